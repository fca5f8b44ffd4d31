#include "preview.h"

#include <algorithm>
#include <cmath>

#include "image/canvas.h"

namespace lamplighter::cli {
namespace {

constexpr Colour kGrey{128, 128, 128};

}  // namespace

Preview::Place& Preview::place_of(std::size_t request) {
  for (Place& place : places_) {
    if (place.request == request) return place;
  }
  const Grid& grid =
      find_grid(engine_.manifest(), jobs_[request].request.width, jobs_[request].request.height);
  // Pictures of another size are all finished.
  if (!places_.empty() && (places_[0].rows != grid.rows || places_[0].columns != grid.columns))
    places_.clear();
  auto place = std::find_if(places_.begin(), places_.end(), [](const Place& old) { return old.finished; });
  if (place == places_.end()) place = places_.emplace(place);
  *place = {request, false, grid.rows, grid.columns, 0, make_canvas(grid.width, grid.height, kGrey)};
  return *place;
}

void Preview::update(const Progress& progress) {
  bool changed = false;
  for (std::size_t i = 0; i < progress.batch; ++i)
    changed = update(place_of(progress.first_request + i), progress.codes(i)) || changed;
  if (changed) show();
}

bool Preview::update(Place& place, const std::vector<std::int32_t>& ids) {
  const int complete = static_cast<int>(ids.size()) / place.columns, rows = place.rows;
  if (complete <= place.complete || complete == rows) return false;  // a complete one is soon finished
  place.complete = complete;
  const int columns = place.columns;
  // The decoder looks beyond the last row: it sees that row again instead of a foreign one.
  Codes codes{rows, columns, {ids.begin(), ids.begin() + complete * columns}};
  for (int row = complete; row < rows; ++row) {
    codes.ids.insert(codes.ids.end(), ids.begin() + (complete - 1) * columns,
                     ids.begin() + complete * columns);
  }
  Image picture = engine_.decode(codes);
  const int top = picture.height / rows * complete;
  fill(picture, {0, top, picture.width, picture.height - top}, kGrey);
  place.picture = std::move(picture);
  return true;
}

void Preview::finish(std::size_t request, const Image& picture) {
  Place& place = place_of(request);
  place.picture = picture;
  place.finished = true;
  show();
}

void Preview::show() const {
  std::vector<Image> pictures;
  for (const Place& place : places_) pictures.push_back(place.picture);
  const int columns = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(pictures.size()))));
  write_png(path_, contact_sheet(pictures, columns));
}

}  // namespace lamplighter::cli
