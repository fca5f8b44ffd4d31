#pragma once

#include <string>
#include <string_view>

#include "lamplighter/image.h"

namespace lamplighter {

// Encodes an image's texts as an Exif block (Exif 2.32, section 4.5.4: a big-endian TIFF structure) for files
// other than PNG. "parameters" becomes UserComment in UTF-16, where image viewers look for it; "lamplighter"
// becomes MakerNote after that word and a zero byte. Other texts are dropped.
std::string encode_exif(const ImageText& text);

// Reads our MakerNote from a block; empty when it is missing or another program's.
std::string read_exif(std::string_view block);

// How an image is to be turned, 1 to 8 (section 4.6.4, tag 0x0112); 1, as it is, where a block does not say
// it.
int read_orientation(std::string_view block);

}  // namespace lamplighter
