#pragma once

#include <functional>
#include <string>
#include <vector>

#include "device/placement.h"

namespace lamplighter {

// A replayed call of a bundle's golden file.
struct CheckResult {
  std::string module, method;
  double difference = 0;  // largest |got - recorded| over outputs and mutated arguments
  double tolerance = 0;
  double distance = 0;                                     // of the record from bf16
  bool passed() const { return difference <= tolerance; }  // false for NaN
};

// Replays every record of the manifest on `device`, in fp32 or, for modules with rounded weights, in bf16.
// Calls `on_result` after each. Throws Error(ExitCode::bundle) when a module or the golden file cannot be
// read.
std::vector<CheckResult> check_modules(const Manifest& manifest, const c10::Device& device,
                                       const std::function<void(const CheckResult&)>& on_result = {});

}  // namespace lamplighter
