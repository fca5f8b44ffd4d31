#pragma once

#include <string>
#include <vector>

namespace lamplighter {

// "; did you mean X?" for the known word that a mistyped one most likely stands for, else empty.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

// "a, b, c".
std::string list_of(const std::vector<std::string>& names);

}  // namespace lamplighter
