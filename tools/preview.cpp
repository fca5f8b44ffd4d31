#include "preview.h"

#include <algorithm>
#include <cmath>

#include "image/canvas.h"

namespace lamplighter::cli {
namespace {

constexpr Colour kGrey{128, 128, 128};

}  // namespace

void Preview::start(const Progress& progress) {
  const Request& request = jobs_[progress.first_request].request;
  const Grid& grid = find_grid(engine_.manifest(), request.width, request.height);
  started_ = true;
  first_ = progress.first_request;
  looked_ = 0;
  rows_ = grid.rows;
  columns_ = grid.columns;
  pictures_.assign(progress.batch, make_canvas(grid.width, grid.height, kGrey));
  complete_.assign(progress.batch, 0);
}

void Preview::update(const Progress& progress) {
  if (!started_ || progress.first_request != first_) start(progress);
  const std::int64_t looked = progress.tokens_done / columns_;
  if (looked == looked_ || progress.tokens_done == progress.tokens_total) return;
  looked_ = looked;
  bool changed = false;
  for (std::size_t i = 0; i < progress.batch; ++i) changed = update(i, progress.codes(i)) || changed;
  if (changed) show();
}

bool Preview::update(std::size_t index, const std::vector<std::int32_t>& ids) {
  const int complete = std::min(static_cast<int>(ids.size()) / columns_, rows_);
  if (complete <= complete_[index]) return false;
  complete_[index] = complete;
  // The decoder looks beyond the last row: it sees that row again instead of a foreign one.
  Codes codes{rows_, columns_, {ids.begin(), ids.begin() + complete * columns_}};
  for (int row = complete; row < rows_; ++row) {
    codes.ids.insert(codes.ids.end(), ids.begin() + (complete - 1) * columns_,
                     ids.begin() + complete * columns_);
  }
  Image picture = engine_.decode(codes);
  const int top = picture.height / rows_ * complete;
  fill(picture, {0, top, picture.width, picture.height - top}, kGrey);
  pictures_[index] = std::move(picture);
  return true;
}

void Preview::finish(std::size_t request, const Image& picture) {
  if (!started_ || request < first_ || request - first_ >= pictures_.size()) return;
  pictures_[request - first_] = picture;
  complete_[request - first_] = rows_;
  if (request - first_ + 1 == pictures_.size()) show();
}

void Preview::show() const {
  const int columns = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(pictures_.size()))));
  write_png(path_, contact_sheet(pictures_, columns));
}

}  // namespace lamplighter::cli
