#include "base/message.h"

#include <array>
#include <cstdio>

#include "base/utf8.h"

namespace lamplighter {
namespace {

constexpr std::size_t kValue = 80;                // bytes
constexpr std::size_t kHead = 1000, kTail = 500;  // of a message

// Line ends, control characters, those that nobody sees, and those that turn the direction of text: a
// terminal would show what follows in another order. Joiners shape letters and stay.
bool ends_line_or_controls(char32_t code) {
  const bool turns = code == 0x061C || code == 0x200E || code == 0x200F ||
                     (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  const bool is_unseen = code == 0xA0 || code == 0xAD || code == 0x200B || code == 0x2060 || code == 0xFEFF;
  return is_unseen || code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
         turns;
}

void append_escaped(std::string& text, char32_t code) {
  if (code == U'\n') {
    text += "\\n";
  } else if (code == U'\r') {
    text += "\\r";
  } else if (code == U'\t') {
    text += "\\t";
  } else {
    std::array<char, 16> digits{};
    std::snprintf(digits.data(), digits.size(), code < 0x80 ? "\\x%02x" : "\\u%04x",
                  static_cast<unsigned>(code));
    text += digits.data();
  }
}

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

}  // namespace

std::string escaped(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char32_t code : decode_utf8(bytes)) {
    if (ends_line_or_controls(code)) {
      append_escaped(text, code);
    } else {
      append_utf8(text, code);
    }
  }
  return text;
}

std::string excerpt_of(std::string_view value) {
  return escaped(shorten(value, kValue));
}

std::string quote(std::string_view value) {
  return "'" + excerpt_of(value) + "'";
}

std::string one_line(std::string_view message) {
  std::string text = escaped(message);
  if (text.size() <= kHead + kTail) return text;
  std::size_t tail = text.size() - kTail;
  while (tail < text.size() && continues(text[tail])) ++tail;
  return shorten(text, kHead) + text.substr(tail);
}

}  // namespace lamplighter
