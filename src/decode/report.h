#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/stopwatch.h"

// What the host learns of cycles. A cycle leaves its report in a fixed tensor; on the CPU it is read at once,
// on a device it is copied into pinned memory without waiting and read while the next cycle runs.
namespace lamplighter {

struct RunState;

// The stages of a cycle in milliseconds. A captured cycle has no stages: then `cycle` alone is known.
struct StageTimes {
  double draft = 0, score = 0, judge = 0, commit = 0;
  double cycle = 0;    // all of them
  double prefill = 0;  // of the images that took slots just before
};

// What a cycle did to one image. D = greatest depth of a tree.
struct ImageReport {
  std::int64_t image = 0;             // its number in the run
  std::int64_t steps = 0;             // codes committed so far
  std::int64_t accepted = 0;          // drafted tokens, also those past the last code of the picture
  std::int64_t root = 0;              // the code before those of this cycle
  bool bad_draft = false;             // logits that children were drawn from were no distribution
  std::vector<std::int64_t> codes;    // committed by this cycle; none when the picture was complete
  std::vector<std::int64_t> path;     // D + 1 accepted nodes, the root first, then -1
  std::vector<std::int64_t> drafted;  // [d]: nodes at depth d + 1 that hold a token
};

struct Report {
  std::vector<ImageReport> images;  // slot by slot; empty slots are left out
  StageTimes times;
};

// Times one cycle from its construction on: on the CPU by the clock, on a device by events in its stream.
class StageClock {
 public:
  // Without `stages` only the prefill and the whole cycle are timed.
  StageClock(const c10::Device& device, bool stages);
  // Ends a stage.
  void lap(double StageTimes::*stage);
  // On a device, waits for the last stage.
  StageTimes read() const;

 private:
  void mark();

  c10::Device device_;
  bool stages_;
  Stopwatch watch_;
  std::vector<double> ms_;          // of the laps, on the CPU
  std::vector<c10::Event> events_;  // around the laps, on a device
  std::vector<double StageTimes::*> laps_;
};

// Reads reports: on the CPU that of the cycle just called, on a device that of the cycle before it.
class ReportReader {
 public:
  explicit ReportReader(const RunState& run);
  ~ReportReader();
  ReportReader(const ReportReader&) = delete;
  ReportReader& operator=(const ReportReader&) = delete;
  // To be called when a cycle is queued, with its clock. Throws Error(ExitCode::bundle) when logits of an
  // image were no distribution.
  std::optional<Report> read(const RunState& run, StageClock clock);

 private:
  struct Pending {
    at::Tensor report;
    StageClock clock;
  };
  std::optional<Pending> pending_;
  std::array<at::Tensor, 2> pinned_;
  std::size_t turn_ = 0;
};

}  // namespace lamplighter
