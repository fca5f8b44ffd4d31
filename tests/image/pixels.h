#pragma once

#include "image/canvas.h"

// Single pixels of images.
namespace lamplighter::test {

constexpr Colour kRed{255, 0, 0};

inline Colour pixel(const Image& image, int x, int y) {
  const auto at = static_cast<std::size_t>((y * image.width + x) * 3);
  return {image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]};
}

}  // namespace lamplighter::test
