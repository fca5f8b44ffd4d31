#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/machine/nvml.h"

namespace lamplighter {

// Energy of the whole machine, whatever uses it: CPU packages and memory through powercap (RAPL), a GPU
// through NVML.
class EnergyMeter {
 public:
  // Starts counting. `powercap` is the folder of the counters; `gpu` may be null.
  explicit EnergyMeter(const Nvml* gpu = nullptr, const std::string& powercap = "/sys/class/powercap");

  // Joules since the last call; empty when no counter is readable. Package counters overflow after a minute
  // or more, so longer pauses between calls are counted short.
  std::optional<double> lap();

 private:
  struct Counter {
    std::string file;
    double range = 0, last = 0;  // microjoules
  };
  const Nvml* gpu_;
  std::optional<double> gpu_last_;  // joules
  std::vector<Counter> counters_;
};

}  // namespace lamplighter
