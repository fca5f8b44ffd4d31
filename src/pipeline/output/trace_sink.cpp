#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "lamplighter/sinks.h"
#include "pipeline/metadata/metadata.h"

namespace lamplighter {
namespace {

std::string trace_lines(std::size_t image, const Json& description, const Statistics& statistics) {
  std::string lines = to_text({{"image", image}, {"settings", description}}) + "\n";
  std::size_t number = 0;
  for (const Cycle& cycle : statistics.cycles) {
    const Json line{{"image", image},
                    {"cycle", number++},
                    {"first", cycle.first},
                    {"committed", cycle.committed},
                    {"accepted", cycle.accepted},
                    {"ms",
                     {{"cycle", cycle.cycle_ms},
                      {"draft", cycle.draft_ms},
                      {"score", cycle.score_ms},
                      {"verify", cycle.verify_ms},
                      {"commit", cycle.commit_ms}}}};
    lines += line.dump() + "\n";
  }
  return lines;
}

class TraceSink : public Sink {
 public:
  TraceSink(Origin origin, std::string path, bool overwrite)
      : origin_(std::move(origin)), path_(std::move(path)), overwrite_(overwrite) {}

  void image(std::size_t index, const Request& request, const Result& result) override {
    lines_ += trace_lines(index, describe_image(origin_, request, result), result.statistics);
  }

  void done() override { write_file(path_, lines_, overwrite_); }
  void stopped() override {
    if (!lines_.empty()) done();
  }

 private:
  Origin origin_;
  std::string path_, lines_;
  bool overwrite_;
};

}  // namespace

std::unique_ptr<Sink> trace_sink(Origin origin, std::string path, bool overwrite) {
  return std::make_unique<TraceSink>(std::move(origin), std::move(path), overwrite);
}

}  // namespace lamplighter
