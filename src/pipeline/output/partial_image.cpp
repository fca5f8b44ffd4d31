#include "pipeline/output/partial_image.h"

namespace lamplighter {

// The decoder looks beyond the last complete row: that row is repeated.
Image decode_rows(const std::vector<std::int32_t>& ids, int rows, int columns,
                  const std::function<Image(const Codes& codes)>& decode) {
  const int complete = static_cast<int>(ids.size()) / columns;
  Codes codes{rows, columns, {ids.begin(), ids.begin() + complete * columns}};
  for (int row = complete; row < rows; ++row) {
    codes.ids.insert(codes.ids.end(), ids.begin() + (complete - 1) * columns,
                     ids.begin() + complete * columns);
  }
  Image image = decode(codes);
  const int top = image.height / rows * complete;
  fill(image, {0, top, image.width, image.height - top}, kNotGenerated);
  return image;
}

}  // namespace lamplighter
