#pragma once

#include <string>
#include <string_view>

#include "lamplighter/image.h"

namespace lamplighter {

// Texts of a picture as an Exif block (Exif 2.32, section 4.5.4: a big-endian TIFF structure), for files that
// are no PNG: "parameters" as UserComment in UTF-16, where programs of the field look for it, "lamplighter"
// as MakerNote after that word and a zero byte. Others are left out.
std::string encode_exif(const PictureText& text);

// The MakerNote of such a block; empty when there is none, and for blocks of others.
std::string read_exif(std::string_view block);

}  // namespace lamplighter
