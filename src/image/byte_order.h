#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lamplighter {

inline std::string encode_16(std::uint16_t value) {
  return {static_cast<char>(value >> 8U), static_cast<char>(value & 0xFFU)};
}
inline std::string encode_32(std::uint32_t value) {
  return encode_16(static_cast<std::uint16_t>(value >> 16U)) +
         encode_16(static_cast<std::uint16_t>(value & 0xFFFFU));
}

// Read a number from the first bytes, the highest first. The caller checks that they exist.
inline std::uint16_t read_16(std::string_view bytes) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[0]) << 8U |
                                    static_cast<unsigned char>(bytes[1]));
}
inline std::uint32_t read_32(std::string_view bytes) {
  return static_cast<std::uint32_t>(read_16(bytes)) << 16U | read_16(bytes.substr(2));
}

// The number in all of these bytes, the lowest first.
inline std::size_t read_little(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace lamplighter
