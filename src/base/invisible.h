#pragma once

#include <string>
#include <string_view>

namespace lamplighter {

// Removes characters without width (byte-order marks, joiners, marks of direction); wide and fixed blanks
// become " ".
std::string without_invisible(std::string_view text);

}  // namespace lamplighter
