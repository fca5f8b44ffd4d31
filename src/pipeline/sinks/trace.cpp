#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "lamplighter/sinks.h"

namespace lamplighter {
namespace {

std::string trace_lines(std::size_t picture, const Statistics& statistics) {
  std::string lines;
  std::size_t number = 0;
  for (const Cycle& cycle : statistics.cycles) {
    const Json line{{"picture", picture},
                    {"cycle", number++},
                    {"first", cycle.first},
                    {"committed", cycle.committed},
                    {"accepted", cycle.accepted},
                    {"ms",
                     {{"cycle", cycle.cycle_ms},
                      {"draft", cycle.draft_ms},
                      {"score", cycle.score_ms},
                      {"judge", cycle.judge_ms},
                      {"commit", cycle.commit_ms}}}};
    lines += line.dump() + "\n";
  }
  return lines;
}

class TraceSink : public Sink {
 public:
  TraceSink(std::string path, bool overwrite) : path_(std::move(path)), overwrite_(overwrite) {}

  void picture(std::size_t index, const Request& /*request*/, const Result& result) override {
    lines_ += trace_lines(index, result.statistics);
  }

  void done() override { write_file(path_, lines_, overwrite_); }
  void stopped() override {
    if (!lines_.empty()) done();
  }

 private:
  std::string path_, lines_;
  bool overwrite_;
};

}  // namespace

std::unique_ptr<Sink> trace_sink(std::string path, bool overwrite) {
  return std::make_unique<TraceSink>(std::move(path), overwrite);
}

}  // namespace lamplighter
