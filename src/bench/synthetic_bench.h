#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/cycles.h"
#include "bundle/synthetic.h"

namespace lamplighter {

// One method of a synthetic run: "ar" or a tree. Times are real; how many drafted tokens a cycle accepts is
// scripted.
struct SyntheticRow {
  std::string name;
  std::int64_t rows = 0;  // of a target pass, both halves of guidance
  std::int64_t drafter_passes = 0;
  double accepted = 0;  // scripted, mean per cycle
  CycleRounds rounds;   // milliseconds per cycle
  StageTimes stages;    // medians over the rounds
  double cycle_ms = 0;  // median
  Interval ratio;       // of a cycle over a step of ar, paired by round
  double bytes = 0;     // weights that a cycle reads
  double bytes_per_ms() const { return bytes / cycle_ms; }
};

struct SyntheticReport {
  std::int64_t target_bytes = 0, drafter_bytes = 0;
  std::int64_t context = 0;   // rows of the cache where the cycles run
  double streaming_rate = 0;  // bytes per millisecond; 0 where it is not measured
  std::vector<SyntheticRow> rows;
};

// Costs of cycles with static trees (names or files) on modules of this shape, against the autoregressive
// step. `on_round` as in measure_cycles. Throws Error (usage, input, memory).
SyntheticReport run_synthetic(const SyntheticShape& shape, const std::vector<std::string>& trees,
                              const CycleOptions& options, const Placement& placement,
                              const std::function<bool(int round)>& on_round = {});

}  // namespace lamplighter
