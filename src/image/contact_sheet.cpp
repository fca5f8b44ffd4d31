#include <algorithm>
#include <cmath>

#include "image/canvas.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr Colour kGround{255, 255, 255};

}  // namespace

Image contact_sheet(const std::vector<Image>& images, int columns, int gap) {
  if (images.empty() || columns < 1 || gap < 0) {
    throw Error(ExitCode::usage, "a contact sheet needs pictures, columns >= 1 and a gap >= 0");
  }
  const int count = static_cast<int>(images.size());
  columns = std::min(columns, count);
  const int rows = (count + columns - 1) / columns;
  int width = 0, height = 0;  // of a cell
  for (const Image& image : images) {
    width = std::max(width, image.width);
    height = std::max(height, image.height);
  }
  Image sheet = make_canvas(columns * (width + gap) - gap, rows * (height + gap) - gap, kGround);
  for (int i = 0; i < count; ++i) {
    const Image& image = images[static_cast<std::size_t>(i)];
    paste(image, sheet, i % columns * (width + gap) + (width - image.width) / 2,
          i / columns * (height + gap) + (height - image.height) / 2);
  }
  return sheet;
}

Image square_sheet(const std::vector<Image>& images, int gap) {
  return contact_sheet(images, static_cast<int>(std::ceil(std::sqrt(static_cast<double>(images.size())))),
                       gap);
}

}  // namespace lamplighter
