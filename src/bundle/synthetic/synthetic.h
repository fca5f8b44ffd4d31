#pragma once

#include <cstdint>
#include <optional>

#include "bundle/modules/module.h"
#include "bundle/synthetic/shape.h"

namespace lamplighter {

// A bundle that was never written: modules with random weights, and the manifest that describes them. It has
// no image decoder and no text encoder.
struct SyntheticBundle {
  Manifest manifest;
  Module target;
  std::optional<Module> drafter;   // manifest.drafters has its entry under "synthetic"
  std::int64_t target_bytes = 0;   // weights that a pass reads: blocks and head
  std::int64_t drafter_bytes = 0;  // the same of the drafter: fc, block and head
};

// What that manifest says.
Manifest synthetic_manifest(const SyntheticShape& shape, c10::ScalarType dtype);

// Makes the modules with the operators and entry points of exported ones, in the dtype and on the device of
// `placement`. Weights of large shapes repeat a block of random numbers; `made` hears of each one. Throws
// Error(memory).
SyntheticBundle make_synthetic(const SyntheticShape& shape, const Placement& placement,
                               const BytesMade& made = {});

}  // namespace lamplighter
