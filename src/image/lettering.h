#pragma once

#include <string>

#include "image/canvas.h"

namespace lamplighter {

// Pixels from one line's top to where letters end; ASCII alone, other characters are left out.
constexpr int kLetterHeight = 9;

int text_width(const std::string& text, int scale = 1);

// One line, `scale` pixels a dot.
void write_text(Image& image, const std::string& text, int left, int top, Colour colour, int scale = 1);

}  // namespace lamplighter
