#pragma once

#include <string>

#include "base/format.h"

namespace lamplighter {

// The baseline of a text below its top, in units of its size.
inline constexpr double kBaseline = 0.77;

// Three decimals, without zeros at the end.
inline std::string short_number(double value) {
  std::string text = format_fixed(value, 3);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace lamplighter
