#include "base/utf8.h"

namespace lamplighter {
namespace {

constexpr char32_t kIllFormed = 0xFFFFFFFF;

bool continues(unsigned char byte) {
  return (byte & 0xC0U) == 0x80U;
}

// The code point at `text[at]` and its length in bytes; kIllFormed and 1 for a byte that starts none (RFC
// 3629).
char32_t next_code(std::string_view text, std::size_t at, std::size_t& length) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  length = 1;
  const unsigned char lead = byte(0);
  if (lead < 0x80) return lead;
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < size) return kIllFormed;
  char32_t code = lead & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if (!continues(byte(i))) return kIllFormed;
    code = code << 6U | (byte(i) & 0x3FU);
  }
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return kIllFormed;
  length = size;
  return code;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t length = 1;
  for (std::size_t at = 0; at < text.size(); at += length) {
    if (next_code(text, at, length) == kIllFormed) return at;
  }
  return std::string_view::npos;
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string codes;
  codes.reserve(text.size());
  std::size_t length = 1;
  for (std::size_t at = 0; at < text.size(); at += length) {
    const char32_t code = next_code(text, at, length);
    codes += code == kIllFormed ? U'\uFFFD' : code;
  }
  return codes;
}

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0U | code >> 6U), put(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    put(0xE0U | code >> 12U), put(0x80U | (code >> 6U & 0x3FU)), put(0x80U | (code & 0x3FU));
  } else {
    put(0xF0U | code >> 18U), put(0x80U | (code >> 12U & 0x3FU));
    put(0x80U | (code >> 6U & 0x3FU)), put(0x80U | (code & 0x3FU));
  }
}

std::string encode_utf8(std::u32string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t code : text) append_utf8(bytes, code);
  return bytes;
}

std::string shorten(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && continues(static_cast<unsigned char>(text[bytes]))) --bytes;
  return std::string(text.substr(0, bytes)) + "...";
}

}  // namespace lamplighter
