#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/stopwatch.h"
#include "decode/report.h"

// A cycle leaves its report in a fixed tensor. On the CPU it is read at once; on a device it is copied into
// pinned memory without waiting, and read while the next cycle runs.
namespace lamplighter {

struct DecodeState;

// Times one cycle from construction on: on the CPU by the clock, on a device by events in its stream.
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

// Reads the report of the cycle just called on the CPU, and of the cycle before it on a device.
class ReportReader {
 public:
  explicit ReportReader(const DecodeState& state);
  ~ReportReader();
  ReportReader(const ReportReader&) = delete;
  ReportReader& operator=(const ReportReader&) = delete;
  // Call it when a cycle is queued, with the cycle's clock and the record of its draft (draft_record.h), if
  // there is one.
  std::optional<Report> read(const DecodeState& state, StageClock clock, const at::Tensor& record = {});

 private:
  struct Copy {
    at::Tensor report, order, record;
  };
  struct Pending {
    Copy copy;
    StageClock clock;
  };
  std::optional<Pending> pending_;
  std::array<Copy, 2> pinned_;
  std::size_t turn_ = 0;
};

}  // namespace lamplighter
