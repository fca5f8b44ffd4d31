#pragma once

#include <string>
#include <string_view>

// Helvetica, which every reader of PDF files has, in the encoding WinAnsi (PDF 1.4, appendix D).
namespace lamplighter {

// Encodes UTF-8 text, a byte a character. Characters outside of the encoding become "?".
std::string encode_winansi(std::string_view text);

// Width of encoded text by Adobe's font metrics, in units of the font size.
double helvetica_width(std::string_view encoded);

}  // namespace lamplighter
