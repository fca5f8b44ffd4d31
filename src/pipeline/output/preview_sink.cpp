#include <algorithm>
#include <utility>

#include "base/stopwatch.h"
#include "image/canvas.h"
#include "lamplighter/sinks.h"
#include "pipeline/output/partial_image.h"

namespace lamplighter {
namespace {

class PreviewSink : public Sink {
 public:
  PreviewSink(std::string path, std::function<Image(const Codes&)> decode, bool overwrite, double share)
      : path_(std::move(path)), decode_(std::move(decode)), overwrite_(overwrite), share_(share) {}

  void progress(const Progress& progress) override {
    if (spent_ > share_ * watch_.elapsed()) return;
    const Stopwatch decoding;
    const Grid& grid = *progress.grid;
    bool changed = false;
    for (std::size_t i = 0; i < progress.requests.size(); ++i) {
      Place& place = place_of(progress.requests[i], grid.rows, grid.columns);
      if (place.image.pixels.empty()) place.image = make_canvas(grid.width, grid.height, kNotGenerated);
      changed = update(place, progress.codes(i)) || changed;
    }
    if (!changed) return;
    show();
    spent_ += decoding.elapsed();
  }

  void image(std::size_t index, const Request& /*request*/, const Result& result) override {
    Place& place = place_of(index, result.codes.rows, result.codes.columns);
    place.image = result.image;
    place.finished = true;
    show();
  }

 private:
  struct Place {
    std::size_t request = 0;
    bool finished = false;
    int rows = 0, columns = 0, complete = 0;  // rows of tokens
    Image image;                              // empty for one that is new
  };

  Place& place_of(std::size_t request, int rows, int columns);
  bool update(Place& place, const std::vector<std::int32_t>& ids);  // true when a row was completed
  void show();

  std::string path_;
  std::function<Image(const Codes&)> decode_;
  bool overwrite_;
  double share_, spent_ = 0;  // milliseconds of decoding
  Stopwatch watch_;
  std::vector<Place> places_;
};

PreviewSink::Place& PreviewSink::place_of(std::size_t request, int rows, int columns) {
  for (Place& place : places_) {
    if (place.request == request) return place;
  }
  // Images of another size are finished: a sheet has one size.
  if (!places_.empty() && (places_[0].rows != rows || places_[0].columns != columns)) places_.clear();
  auto place = std::find_if(places_.begin(), places_.end(), [](const Place& old) { return old.finished; });
  if (place == places_.end()) place = places_.emplace(place);
  *place = {request, false, rows, columns, 0, {}};
  return *place;
}

bool PreviewSink::update(Place& place, const std::vector<std::int32_t>& ids) {
  const int complete = static_cast<int>(ids.size()) / place.columns, rows = place.rows;
  if (complete <= place.complete || complete == rows) return false;  // a complete one is soon finished
  place.complete = complete;
  place.image = decode_rows(ids, rows, place.columns, decode_);
  return true;
}

void PreviewSink::show() {
  std::vector<Image> images;
  for (const Place& place : places_) images.push_back(place.image);
  write_image(path_, square_sheet(images), {}, overwrite_);
  overwrite_ = true;  // the file is ours from here on
}

}  // namespace

std::unique_ptr<Sink> preview_sink(std::string path, std::function<Image(const Codes& codes)> decode,
                                   bool overwrite, double share) {
  return std::make_unique<PreviewSink>(std::move(path), std::move(decode), overwrite, share);
}

}  // namespace lamplighter
