#include "pipeline/outputs/rows.h"

namespace lamplighter {

// The decoder looks beyond the last row: it sees that row again instead of a foreign one.
Image paint_rows(const std::vector<std::int32_t>& ids, int rows, int columns,
                 const std::function<Image(const Codes& codes)>& decode) {
  const int complete = static_cast<int>(ids.size()) / columns;
  Codes codes{rows, columns, {ids.begin(), ids.begin() + complete * columns}};
  for (int row = complete; row < rows; ++row) {
    codes.ids.insert(codes.ids.end(), ids.begin() + (complete - 1) * columns,
                     ids.begin() + complete * columns);
  }
  Image picture = decode(codes);
  const int top = picture.height / rows * complete;
  fill(picture, {0, top, picture.width, picture.height - top}, kNotDrawn);
  return picture;
}

}  // namespace lamplighter
