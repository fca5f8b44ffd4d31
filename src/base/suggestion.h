#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lamplighter {

// "; did you mean X?" for the known word that a mistyped one most likely stands for, else empty. More
// mistakes than `most` are no slip; letters that changed places are one.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known,
                         std::size_t most = 2);

// "a, b, c".
std::string list_of(const std::vector<std::string>& names);

}  // namespace lamplighter
