#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/machine/nvml.h"

namespace lamplighter {

// Energy that the machine counts: of CPU packages and their memory through powercap (RAPL), of a GPU through
// NVML. All of it, whoever uses it.
class EnergyMeter {
 public:
  // Counts from here on. `powercap` is the folder of the counters; `gpu` may be null.
  explicit EnergyMeter(const Nvml* gpu = nullptr, const std::string& powercap = "/sys/class/powercap");

  // Joules since the last call; nothing where no counter can be read. The counters of packages wrap around
  // (after a minute or more): a longer pause between calls is counted short.
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
