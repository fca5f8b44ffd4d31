#pragma once

#include <cstddef>
#include <string_view>

// What the readers of other programs' prompt syntax share.
namespace lamplighter {

inline constexpr auto kNone = std::string_view::npos;
inline constexpr std::size_t kLooked = 200;  // bytes that are looked at behind an opening mark

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
inline bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

}  // namespace lamplighter
