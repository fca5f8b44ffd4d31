#pragma once

#include <string_view>

namespace lamplighter {

// Natural order of names: runs of digits compare as numbers, so that prompt_2 comes before prompt_10.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace lamplighter
