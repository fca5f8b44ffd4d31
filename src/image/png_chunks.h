#pragma once

#include <string>
#include <string_view>

#include "lamplighter/image.h"

namespace lamplighter {

inline constexpr std::string_view kPngSignature{"\x89PNG\r\n\x1a\n", 8};

// The text chunks of a PNG file; `path` names it in messages. Throws as read_picture_text does.
PictureText parse_png_text(std::string_view bytes, const std::string& path);

// One chunk of a PNG file: length, type, data, CRC-32 (PNG specification, section 5.3).
std::string encode_png_chunk(std::string_view type, std::string_view data);

// An uncompressed iTXt chunk: keyword and UTF-8 text (section 11.3.3).
std::string encode_png_text(std::string_view keyword, std::string_view text);

}  // namespace lamplighter
