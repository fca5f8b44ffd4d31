#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "lamplighter/image.h"

namespace lamplighter {

inline constexpr std::string_view kPngSignature{"\x89PNG\r\n\x1a\n", 8};

// Reads the text chunks of a PNG file. `path` names it in messages; `most`: bytes of all texts.
// Throws like read_image_text.
ImageText parse_png_text(std::string_view bytes, const std::string& path,
                         std::size_t most = limits::kPngText);

// The packed rows in a file of encode_png: the data of its chunks IDAT, a zlib stream (section 11.2.4).
std::string png_data(std::string_view bytes);

// Encodes a PNG chunk: length, type, data, CRC-32 (PNG specification, section 5.3).
std::string encode_png_chunk(std::string_view type, std::string_view data);

// Encodes an uncompressed iTXt chunk: keyword and UTF-8 text (section 11.3.3).
std::string encode_png_text(std::string_view keyword, std::string_view text);

}  // namespace lamplighter
