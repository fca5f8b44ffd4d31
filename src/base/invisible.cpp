#include "base/invisible.h"

#include <algorithm>

#include "base/utf8.h"

namespace lamplighter {

std::string without_invisible(std::string_view text) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return std::string(text);
  const auto in = [](char32_t code, char32_t first, char32_t last) { return code >= first && code <= last; };
  std::string visible;
  for (const char32_t code : decode_utf8(text)) {
    const bool has_no_width = code == 0xAD || code == 0x61C || code == 0x180E || code == 0xFEFF ||
                              in(code, 0x200B, 0x200F) || in(code, 0x202A, 0x202E) ||
                              in(code, 0x2060, 0x2069);
    const bool is_blank =
        code == 0xA0 || in(code, 0x2000, 0x200A) || code == 0x202F || code == 0x205F || code == 0x3000;
    if (!has_no_width) append_utf8(visible, is_blank ? U' ' : code);
  }
  return visible;
}

}  // namespace lamplighter
