#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace lamplighter {

// Formats a number with `digits` decimals.
inline std::string format_fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

// "256x256": two sides.
template <class Count>
std::string sides(Count first, Count second) {
  return std::to_string(first) + "x" + std::to_string(second);
}

// "1 image", "3 images", "1 pass", "3 passes".
template <class Count>
std::string counted(Count count, const std::string& unit) {
  return std::to_string(count) + " " + unit + (count == 1 ? "" : unit.back() == 's' ? "es" : "s");
}

}  // namespace lamplighter
