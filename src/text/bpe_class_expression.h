#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include "text/pattern.h"

namespace lamplighter {

// Returns the end of a match that begins at a position of a text.
using ClassMatch = std::function<std::optional<std::size_t>(pattern::Text, std::size_t)>;

// Compiles the character-class expressions of DeepSeek's tokenizers: a set, optionally with `\s?` before and
// `+` after it. A set is \p{L}, \p{N}, \p{P}, or brackets around these, characters, ranges a-b and the
// escapes \r \n \t \\ \/ \[ \] \- \^. Returns nothing for any other expression.
std::optional<ClassMatch> read_class_expression(std::string_view expression);

}  // namespace lamplighter
