#pragma once

#include <array>
#include <cstdint>

#include "lamplighter/image.h"

namespace lamplighter {

using Colour = std::array<std::uint8_t, 3>;  // red, green, blue

struct Rectangle {
  int left = 0, top = 0, width = 0, height = 0;  // pixels
};

struct Extent {
  std::int64_t width = 0, height = 0;  // pixels
};

// Size of contact_sheet for `count` images of one size.
Extent sheet_extent(std::int64_t count, std::int64_t columns, const Extent& image, int gap = 2);
// Columns and size of square_sheet.
std::int64_t square_columns(std::int64_t count);
Extent square_sheet_extent(std::int64_t count, const Extent& image, int gap = 2);

Image make_canvas(int width, int height, Colour ground);

// Clip to the image.
void fill(Image& image, const Rectangle& area, Colour colour);
void paste(const Image& image, Image& onto, int left, int top);

}  // namespace lamplighter
