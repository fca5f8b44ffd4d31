#pragma once

#include <string>
#include <string_view>

namespace lamplighter {

// The text of an HTML fragment as BeautifulSoup(text, "html.parser").text gives it: tags, comments,
// declarations, scripts and styles dropped, character references resolved, broken markup kept as text.
std::u32string html_text(std::u32string_view html);

// html.unescape(): resolves character references, also those without a closing semicolon.
std::u32string unescape_html(std::u32string_view text);

// What Windows-1252 means by a code of U+0080 .. U+009F; the code itself where it means nothing.
char32_t from_windows_1252(char32_t code);

}  // namespace lamplighter
