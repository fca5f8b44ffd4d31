#pragma once

#include <string>
#include <string_view>

namespace lamplighter {

// The part of ftfy.fix_text() that matters for captions: C1 control codes read as Windows-1252, Latin
// ligatures taken apart, unusual widths unified, curly quotes straightened, line breaks unified, terminal
// escapes and control characters dropped, canonical composition. Text decoded with a wrong encoding is left
// as it is.
std::u32string repair_text(std::u32string_view text);

}  // namespace lamplighter
