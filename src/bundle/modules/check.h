#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bundle/placement.h"

namespace lamplighter {

// One recorded call of a bundle's golden file, replayed.
struct CheckResult {
  std::string module, method;
  double difference = 0;  // largest |got - recorded| over outputs and mutated arguments
  double tolerance = 0;
  double distance = 0;                                     // of the record, from bf16
  bool passed() const { return difference <= tolerance; }  // false for NaN
};

// Replays every record of the manifest in fp32, of modules with rounded weights in bf16, on `device`, module
// by module; `on_result` hears of each as it is done. Throws Error(ExitCode::bundle) when a module or the
// golden file cannot be read.
std::vector<CheckResult> check_modules(const Manifest& manifest, const c10::Device& device,
                                       const std::function<void(const CheckResult&)>& on_result = {});

}  // namespace lamplighter
