#include "pipeline/output/partial_image.h"

#include <algorithm>

#include "pipeline/region.h"

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

Image decode_part(const std::vector<std::int32_t>& ids, const Grid& grid, const Request& request,
                  const std::function<Image(const Codes& codes)>& decode) {
  if (!request.region) return decode_rows(ids, grid.rows, grid.columns, decode);
  Codes codes{grid.rows, grid.columns, request.kept};
  std::copy(ids.begin(), ids.end(), codes.ids.begin());
  Image image = decode(codes);
  const std::vector<std::int32_t> kept = kept_outside(grid, *request.region, request.kept);
  const int width = image.width / grid.columns, height = image.height / grid.rows;  // of a token
  for (auto position = static_cast<int>(ids.size()); position < static_cast<int>(kept.size()); ++position) {
    if (kept[static_cast<std::size_t>(position)] >= 0) continue;
    fill(image, {position % grid.columns * width, position / grid.columns * height, width, height},
         kNotGenerated);
  }
  return image;
}

}  // namespace lamplighter
