#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bundle/synthetic/shape.h"
#include "device/placement.h"
#include "measure/cycles.h"
#include "measure/statistics.h"

namespace lamplighter {

// A method of a synthetic run at one batch size. Times are real; the number of accepted drafts is scripted.
struct SyntheticRow {
  std::string name;
  int batch_size = 1;
  std::int64_t rows = 0;  // positions of a target pass: all images, doubled by guidance
  std::int64_t drafter_passes = 0;
  double accepted = 0;       // scripted mean per cycle
  CycleRounds rounds;        // milliseconds per cycle
  StageTimes stages;         // medians over rounds
  double cycle_ms = 0;       // median over rounds
  Interval ratio;            // cycle time over an ar step at the same batch size, paired by round
  double decode_ms = 0;      // of whole images, if every cycle were like these; without prompts
  std::int64_t kernels = 0;  // of a cycle captured as a CUDA graph; 0: not captured
  double weight_bytes = 0;   // weights read per cycle: the target once, the draft model once per pass
  double cache_bytes = 0;    // keys and values read per cycle
  double bytes() const { return weight_bytes + cache_bytes; }
  double images_per_second() const { return 1000 * batch_size / decode_ms; }
};

struct SyntheticReport {
  std::int64_t target_bytes = 0, drafter_bytes = 0;
  std::int64_t context = 0;     // cache slots in use where cycles run
  std::int64_t peak_bytes = 0;  // see peak_memory
  // Memory bandwidth of the device in bytes per millisecond; 0: unknown. Measured on the CPU, set by the
  // caller otherwise.
  double bandwidth = 0;
  bool bandwidth_is_published = false;  // from the data sheet, not measured
  std::vector<SyntheticRow> rows;

  // The least time to read a cycle's bytes.
  double floor_ms(const SyntheticRow& row) const { return row.bytes() / bandwidth; }
};

// Measures cycles on modules with random weights of this shape, relative to the autoregressive step.
// `methods`: the baseline first; others need a fixed tree or window, and draft with EAGLE's network or
// without one. Each batch size is a run of its own, in which methods take turns. `on_round` as in
// measure_cycles; `made` as in make_synthetic. Throws Error (usage, input, memory); checks the request, and
// that weights and caches fit, before weights are made. The drafter is made only if a method drafts with it.
SyntheticReport run_synthetic(SyntheticShape shape, const std::vector<BenchMethod>& methods,
                              const std::vector<int>& batch_sizes, const CycleOptions& options,
                              const Placement& placement, const std::function<bool(int round)>& on_round = {},
                              const BytesMade& made = {});

}  // namespace lamplighter
