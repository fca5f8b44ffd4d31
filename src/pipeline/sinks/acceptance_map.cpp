#include "image/acceptance_map.h"

#include <algorithm>
#include <utility>

#include "lamplighter/sinks.h"

namespace lamplighter {
namespace {

// For every token how many its cycle committed. The prefill commits the first one alone.
std::vector<std::int64_t> committed_with(const Statistics& statistics, std::size_t tokens) {
  std::vector<std::int64_t> counts(tokens, 1);
  for (const Cycle& cycle : statistics.cycles) {
    const auto begin = std::min(static_cast<std::size_t>(cycle.first), tokens);
    const auto end = std::min(begin + static_cast<std::size_t>(cycle.committed), tokens);
    std::fill(counts.begin() + static_cast<std::ptrdiff_t>(begin),
              counts.begin() + static_cast<std::ptrdiff_t>(end), cycle.committed);
  }
  return counts;
}

class AcceptanceMapSink : public Sink {
 public:
  explicit AcceptanceMapSink(std::string path) : path_(std::move(path)) {}

  void picture(std::size_t /*index*/, const Request& /*request*/, const Result& result) override {
    const Codes& codes = result.codes;
    grids_.push_back(
        {result.image, codes.rows, codes.columns, committed_with(result.statistics, codes.ids.size())});
  }

  void done() override { write_png(path_, acceptance_map(grids_)); }

 private:
  std::string path_;
  std::vector<AcceptanceGrid> grids_;
};

}  // namespace

std::unique_ptr<Sink> acceptance_map_sink(std::string path) {
  return std::make_unique<AcceptanceMapSink>(std::move(path));
}

}  // namespace lamplighter
