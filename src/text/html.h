#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamplighter {

// Extracts text from an HTML fragment like BeautifulSoup(text, "html.parser").text: drops tags, comments,
// declarations, scripts and styles, resolves character references, keeps broken markup as text. Adds to
// *steps the characters that it looks at, each time.
std::u32string html_text(std::u32string_view html, std::size_t* steps = nullptr);

// Resolves character references like Python's html.unescape(), also without a closing semicolon.
std::u32string unescape_html(std::u32string_view text);

// Maps a code of U+0080 .. U+009F through Windows-1252; undefined codes stay.
char32_t from_windows_1252(char32_t code);

}  // namespace lamplighter
