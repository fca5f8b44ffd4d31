#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamplighter {

// Byte offset of the first ill-formed UTF-8 sequence (overlong forms, surrogates and values above U+10FFFF
// included), npos when the text is well-formed.
std::size_t find_invalid_utf8(std::string_view text);

// Code points of a text; every ill-formed sequence becomes one U+FFFD.
std::u32string decode_utf8(std::string_view text);

std::string encode_utf8(std::u32string_view text);
void append_utf8(std::string& text, char32_t code);

// At most `bytes` bytes of a text, cut between code points; "..." marks a cut. For messages.
std::string shorten(std::string_view text, std::size_t bytes);

}  // namespace lamplighter
