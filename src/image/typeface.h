#pragma once

#include <string>
#include <vector>

namespace lamplighter {

// The letters that a figure is laid out for: letters of dots, which pixels show, or Helvetica.
enum class Typeface { dots, helvetica };

// Pixels per dot at this height of a line, in pixels.
int dot_scale(double size);

// Width of one line. `size` is its height; both in one unit.
double width_of(const std::string& text, Typeface typeface, double size);

// Breaks a text at its line ends, and at blanks where a line is wider than `width`. A longer word is broken
// behind ":" or ",", as in names of methods, else anywhere, so that each line fits or is one character. At
// least one line.
std::vector<std::string> wrap_text(const std::string& text, Typeface typeface, double size, double width);

}  // namespace lamplighter
