#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamplighter {

// Does what ftfy.fix_text() does to captions: repairs mojibake, reads C1 control codes as Windows-1252,
// splits Latin ligatures, unifies character widths, quotes and line breaks, drops terminal escapes and
// control characters, composes (NFC), and repeats all that for every line until nothing changes. Adds to
// *steps the characters that its searches look at.
std::u32string repair_text(std::u32string_view text, std::size_t* steps = nullptr);

}  // namespace lamplighter
