#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace lamplighter {

// A number with so many digits behind the point.
inline std::string format_fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

}  // namespace lamplighter
