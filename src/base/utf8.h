#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamplighter {

// Byte offset of the first ill-formed UTF-8 sequence, which includes overlong forms, surrogates and values
// above U+10FFFF. Returns npos for well-formed text.
std::size_t find_invalid_utf8(std::string_view text);

// The bytes of a text in front of a sequence that it ends in and that more bytes may complete.
std::size_t count_whole_utf8(std::string_view text);

// Decodes code points. Every ill-formed sequence becomes one U+FFFD.
std::u32string decode_utf8(std::string_view text);

std::string encode_utf8(std::u32string_view text);
void append_utf8(std::string& text, char32_t code);

// Cuts a text for a message to at most `bytes` bytes, between code points; "..." marks the cut.
std::string shorten(std::string_view text, std::size_t bytes);

}  // namespace lamplighter
