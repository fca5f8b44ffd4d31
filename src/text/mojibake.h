#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lamplighter {

// Repairs mojibake, text that was read in another encoding than it was written in, as ftfy.fix_encoding()
// does: where characters stand side by side that hardly any language has so, the text or a part of it is
// written back in one of ten encodings and read as UTF-8. Adds to *steps the characters that its searches
// look at.
std::u32string fix_encoding(std::u32string_view text, std::size_t* steps = nullptr);

}  // namespace lamplighter
