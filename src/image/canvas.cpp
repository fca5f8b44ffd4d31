#include "image/canvas.h"

#include <algorithm>

namespace lamplighter {
namespace {

constexpr std::size_t kChannels = 3;

std::size_t offset(const Image& image, int x, int y) {
  const std::size_t pixel =
      static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) + static_cast<std::size_t>(x);
  return pixel * kChannels;
}

// The part of an area inside the image; empty when there is none.
Rectangle clip(const Image& image, const Rectangle& area) {
  const int left = std::clamp(area.left, 0, image.width), top = std::clamp(area.top, 0, image.height);
  const int right = std::clamp(area.left + area.width, left, image.width);
  const int bottom = std::clamp(area.top + area.height, top, image.height);
  return {left, top, right - left, bottom - top};
}

}  // namespace

Image make_canvas(int width, int height, Colour ground) {
  Image image{width, height, {}};
  image.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * kChannels);
  fill(image, {0, 0, width, height}, ground);
  return image;
}

void fill(Image& image, const Rectangle& area, Colour colour) {
  const Rectangle inside = clip(image, area);
  for (int y = inside.top; y < inside.top + inside.height; ++y) {
    auto pixel = image.pixels.begin() + static_cast<std::ptrdiff_t>(offset(image, inside.left, y));
    for (int x = 0; x < inside.width; ++x) pixel = std::copy(colour.begin(), colour.end(), pixel);
  }
}

void paste(const Image& image, Image& onto, int left, int top) {
  const Rectangle inside = clip(onto, {left, top, image.width, image.height});
  const std::size_t bytes = static_cast<std::size_t>(inside.width) * kChannels;
  for (int y = inside.top; y < inside.top + inside.height; ++y) {
    const auto from =
        image.pixels.begin() + static_cast<std::ptrdiff_t>(offset(image, inside.left - left, y - top));
    std::copy_n(from, bytes, onto.pixels.begin() + static_cast<std::ptrdiff_t>(offset(onto, inside.left, y)));
  }
}

}  // namespace lamplighter
