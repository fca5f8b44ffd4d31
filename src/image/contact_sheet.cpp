#include <algorithm>
#include <cmath>

#include "image/canvas.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr Colour kGround{255, 255, 255};

}  // namespace

std::int64_t square_columns(std::int64_t count) {
  return static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
}

Extent sheet_extent(std::int64_t count, std::int64_t columns, const Extent& image, int gap) {
  const std::int64_t across = std::min(columns, count), down = (count + across - 1) / across;
  return {across * (image.width + gap) - gap, down * (image.height + gap) - gap};
}

Extent square_sheet_extent(std::int64_t count, const Extent& image, int gap) {
  return sheet_extent(count, square_columns(count), image, gap);
}

Image contact_sheet(const std::vector<Image>& images, int columns, int gap) {
  if (images.empty() || columns < 1 || gap < 0) {
    throw Error(ExitCode::usage, "a contact sheet needs images, columns >= 1 and a gap >= 0");
  }
  const int count = static_cast<int>(images.size());
  columns = std::min(columns, count);
  int width = 0, height = 0;  // of a cell
  for (const Image& image : images) {
    width = std::max(width, image.width);
    height = std::max(height, image.height);
  }
  const Extent extent = sheet_extent(count, columns, {width, height}, gap);
  Image sheet = make_canvas(static_cast<int>(extent.width), static_cast<int>(extent.height), kGround);
  for (int i = 0; i < count; ++i) {
    const Image& image = images[static_cast<std::size_t>(i)];
    paste(image, sheet, i % columns * (width + gap) + (width - image.width) / 2,
          i / columns * (height + gap) + (height - image.height) / 2);
  }
  return sheet;
}

Image square_sheet(const std::vector<Image>& images, int gap) {
  return contact_sheet(images, static_cast<int>(square_columns(static_cast<std::int64_t>(images.size()))),
                       gap);
}

}  // namespace lamplighter
