#pragma once

#include <string>

#include "image/canvas.h"

namespace lamplighter {

// Height of a line in pixels at scale 1.
constexpr int kLetterHeight = 9;

int text_width(const std::string& text, int scale = 1);

// Writes one line with `scale` pixels per dot. Characters outside ASCII are dropped.
void write_text(Image& image, const std::string& text, int left, int top, Colour colour, int scale = 1);

}  // namespace lamplighter
