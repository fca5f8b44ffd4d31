#include "base/utf8.h"

namespace lamplighter {
namespace {

constexpr char32_t kIllFormed = 0xFFFFFFFF;

bool continues(unsigned char byte) {
  return (byte & 0xC0U) == 0x80U;
}

// Decodes the code point at `text[at]` and sets its length in bytes. For an ill-formed sequence it returns
// kIllFormed and the length of the part that could begin a valid sequence (RFC 3629; Unicode standard,
// section 3.9).
char32_t next_code(std::string_view text, std::size_t at, std::size_t& length) {
  const auto lead = static_cast<unsigned char>(text[at]);
  length = 1;
  if (lead < 0x80) return lead;
  if (lead < 0xC2 || lead > 0xF4) return kIllFormed;
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  // The second byte rules out overlong forms, surrogates and values above U+10FFFF.
  unsigned char least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t code = lead & (0xFFU >> (size + 1));
  for (; length < size; ++length, least = 0x80, most = 0xBF) {
    if (at + length >= text.size()) return kIllFormed;
    const auto byte = static_cast<unsigned char>(text[at + length]);
    if (byte < least || byte > most) return kIllFormed;
    code = code << 6U | (byte & 0x3FU);
  }
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

std::size_t count_whole_utf8(std::string_view text) {
  for (std::size_t at = text.size(); at > 0 && text.size() - at < 3;) {
    if (continues(static_cast<unsigned char>(text[--at]))) continue;
    std::size_t length = 1;
    const auto lead = static_cast<unsigned char>(text[at]);
    const bool begins = lead >= 0xC2 && lead <= 0xF4 && next_code(text, at, length) == kIllFormed;
    return begins && at + length == text.size() ? at : text.size();
  }
  return text.size();
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
