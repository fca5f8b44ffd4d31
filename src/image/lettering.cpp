#include "image/lettering.h"

#include <cstddef>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb_easy_font.h>
#pragma GCC diagnostic pop

namespace lamplighter {
namespace {

constexpr std::size_t kRectangles = 11;  // the most that the library draws for a letter, the X

struct Corner {
  float x, y, z;
  unsigned char colour[4];
};

// Keeps ASCII, which is all that the library can draw.
std::string printable(const std::string& text) {
  std::string kept;
  for (const char c : text) {
    if (c >= ' ' && c <= '~') kept += c;
  }
  return kept;
}

}  // namespace

int text_width(const std::string& text, int scale) {
  std::string line = printable(text);
  return stb_easy_font_width(line.data()) * scale;
}

void write_text(Image& image, const std::string& text, int left, int top, Colour colour, int scale) {
  std::string line = printable(text);
  std::vector<Corner> corners(line.size() * kRectangles * 4);
  const int quads = stb_easy_font_print(0, 0, line.data(), nullptr, corners.data(),
                                        static_cast<int>(corners.size() * sizeof(Corner)));
  const auto dots = [&](float from, float to) { return static_cast<int>(to - from) * scale; };
  for (int i = 0; i < quads; ++i) {
    const Corner* corner = &corners[static_cast<std::size_t>(i) * 4];  // clockwise from the top left
    fill(image,
         {left + dots(0, corner[0].x), top + dots(0, corner[0].y), dots(corner[0].x, corner[2].x),
          dots(corner[0].y, corner[2].y)},
         colour);
  }
}

}  // namespace lamplighter
