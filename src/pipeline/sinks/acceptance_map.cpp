#include "image/acceptance_map.h"

#include <utility>

#include "lamplighter/sinks.h"

namespace lamplighter {
namespace {

class AcceptanceMapSink : public Sink {
 public:
  AcceptanceMapSink(std::string path, bool overwrite) : path_(std::move(path)), overwrite_(overwrite) {}

  void picture(std::size_t /*index*/, const Request& /*request*/, const Result& result) override {
    const Codes& codes = result.codes;
    grids_.push_back(
        {result.image, codes.rows, codes.columns, committed_with(result.statistics, codes.ids.size())});
  }

  void done() override { write_png(path_, acceptance_map(grids_), {}, overwrite_); }
  void stopped() override {
    if (!grids_.empty()) done();
  }

 private:
  std::string path_;
  bool overwrite_;
  std::vector<AcceptanceGrid> grids_;
};

}  // namespace

std::unique_ptr<Sink> acceptance_map_sink(std::string path, bool overwrite) {
  return std::make_unique<AcceptanceMapSink>(std::move(path), overwrite);
}

}  // namespace lamplighter
