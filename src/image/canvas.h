#pragma once

#include <array>
#include <cstdint>

#include "lamplighter/image.h"

namespace lamplighter {

using Colour = std::array<std::uint8_t, 3>;  // red, green, blue

struct Rectangle {
  int left = 0, top = 0, width = 0, height = 0;  // pixels
};

Image make_canvas(int width, int height, Colour ground);

// Both draw what lies inside the picture.
void fill(Image& image, const Rectangle& area, Colour colour);
void paste(const Image& picture, Image& onto, int left, int top);

}  // namespace lamplighter
