#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lamplighter {

inline constexpr std::string_view kPngSignature{"\x89PNG\r\n\x1a\n", 8};

// The number in the first four bytes.
inline std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (const char byte : bytes.substr(0, 4)) value = value << 8U | static_cast<unsigned char>(byte);
  return value;
}

// One chunk of a PNG file: length, type, data, CRC-32 (PNG specification, section 5.3).
std::string encode_png_chunk(std::string_view type, std::string_view data);

// An uncompressed iTXt chunk: keyword and UTF-8 text (section 11.3.3).
std::string encode_png_text(std::string_view keyword, std::string_view text);

}  // namespace lamplighter
