#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamplighter::html {

// What the readers of markup and of character references share.
constexpr std::size_t kNone = std::u32string_view::npos;
constexpr char32_t kReplacement = 0xFFFD;

inline bool is_letter(char32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
inline bool is_figure(char32_t c) {
  return c >= '0' && c <= '9';
}
inline bool is_hexadecimal(char32_t c) {
  return is_figure(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

template <class Set>
std::size_t skip(std::u32string_view text, std::size_t at, Set set) {
  while (at < text.size() && set(text[at])) ++at;
  return at;
}

// Start and base of the digits in "#65" or "#x41", whose "#" is at `hash`.
struct Number {
  std::size_t first, last;
  char32_t base;
};
Number find_number(std::u32string_view text, std::size_t hash);

// Parses a number in base 10 or 16, saturated above the last code point.
char32_t parse_code(std::u32string_view figures, char32_t base);

// The characters of an entity, "amp;" or "amp"; nothing where there is none of this name.
std::u32string named(std::u32string_view name);

}  // namespace lamplighter::html
