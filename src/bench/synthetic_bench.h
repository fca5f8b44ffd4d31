#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/cycles.h"
#include "bench/report/statistics.h"
#include "bundle/placement.h"
#include "bundle/synthetic/shape.h"

namespace lamplighter {

// A method of a synthetic run with so many pictures drawn together. Times are real; how many drafted tokens a
// cycle accepts is scripted.
struct SyntheticRow {
  std::string name;
  int batch_size = 1;
  std::int64_t rows = 0;  // of a target pass, both halves of guidance of all pictures
  std::int64_t drafter_passes = 0;
  double accepted = 0;       // scripted, mean per cycle
  CycleRounds rounds;        // milliseconds per cycle
  StageTimes stages;         // medians over the rounds
  double cycle_ms = 0;       // median
  Interval ratio;            // of a cycle over a step of ar with as many pictures, paired by round
  double decode_ms = 0;      // of whole pictures if every cycle is one of these, without their prompts
  std::int64_t kernels = 0;  // of a cycle that was captured as a graph; 0: none was
  double weight_bytes = 0;   // of weights, that a cycle reads: the target once, the drafter pass by pass
  double cache_bytes = 0;    // of keys and values before the cycle, the same
  double bytes() const { return weight_bytes + cache_bytes; }
  double pictures_per_second() const { return 1000 * batch_size / decode_ms; }
};

struct SyntheticReport {
  std::int64_t target_bytes = 0, drafter_bytes = 0;
  std::int64_t context = 0;     // rows of the cache where the cycles run
  std::int64_t peak_bytes = 0;  // of memory, see peak_memory
  // Of the device's memory in bytes per millisecond: measured on the CPU, else for the caller to fill in; 0
  // where it is not known.
  double bandwidth = 0;
  bool bandwidth_is_published = false;  // by the vendor, not measured here
  std::vector<SyntheticRow> rows;

  // The least time in which a cycle's bytes can be read.
  double floor_ms(const SyntheticRow& row) const { return row.bytes() / bandwidth; }
};

// Costs of cycles on modules of this shape, against the autoregressive step. Methods: the baseline first;
// others have a fixed tree or window, and draft with EAGLE's drafter or with none. Every batch size is a run
// of its own, in which the methods take turns. `on_round` as in measure_cycles. Throws Error (usage, input,
// memory), what is asked for before weights are made.
SyntheticReport run_synthetic(const SyntheticShape& shape, const std::vector<BenchMethod>& methods,
                              const std::vector<int>& batch_sizes, const CycleOptions& options,
                              const Placement& placement,
                              const std::function<bool(int round)>& on_round = {});

}  // namespace lamplighter
