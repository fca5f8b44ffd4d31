#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include "text/pattern.h"

namespace lamplighter {

// Where a match that begins at a place of a text ends.
using ClassMatch = std::function<std::optional<std::size_t>(pattern::Text, std::size_t)>;

// Reads expressions that name their characters, as DeepSeek's tokenizers have them: a set with or without
// `\s?` in front and `+` behind. A set is \p{L}, \p{N} or \p{P}, or stands in brackets and consists of these,
// of characters, ranges a-b and the escapes \r \n \t \\ \/ \[ \] \- \^. Nothing for every other expression.
std::optional<ClassMatch> read_class_expression(std::string_view expression);

}  // namespace lamplighter
