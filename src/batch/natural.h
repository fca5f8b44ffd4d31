#pragma once

#include <string_view>

namespace lamplighter {

// The natural order of names: runs of figures count as numbers, so that prompt_2 comes before prompt_10.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace lamplighter
