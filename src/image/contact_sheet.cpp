#include <algorithm>

#include "lamplighter/error.h"
#include "lamplighter/image.h"

namespace lamplighter {
namespace {

constexpr std::size_t kChannels = 3;
constexpr std::uint8_t kGround = 255;

void paste(const Image& picture, Image& sheet, int left, int top) {
  const std::size_t row_bytes = static_cast<std::size_t>(picture.width) * kChannels;
  for (int y = 0; y < picture.height; ++y) {
    const auto from = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(y) * row_bytes);
    const std::size_t pixel = static_cast<std::size_t>(top + y) * static_cast<std::size_t>(sheet.width) +
                              static_cast<std::size_t>(left);
    std::copy_n(picture.pixels.begin() + from, row_bytes,
                sheet.pixels.begin() + static_cast<std::ptrdiff_t>(pixel * kChannels));
  }
}

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
  Image sheet;
  sheet.width = columns * (width + gap) - gap;
  sheet.height = rows * (height + gap) - gap;
  sheet.pixels.assign(
      static_cast<std::size_t>(sheet.width) * static_cast<std::size_t>(sheet.height) * kChannels, kGround);
  for (int i = 0; i < count; ++i) {
    const Image& image = images[static_cast<std::size_t>(i)];
    paste(image, sheet, i % columns * (width + gap) + (width - image.width) / 2,
          i / columns * (height + gap) + (height - image.height) / 2);
  }
  return sheet;
}

}  // namespace lamplighter
