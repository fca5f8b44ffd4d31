#pragma once

#include <torch/csrc/jit/api/module.h>

#include <cstdint>
#include <optional>

#include "bundle/synthetic/shape.h"
#include "device/placement.h"

namespace lamplighter {

// A target and its drafter as exporters make them, not prepared yet. Weights of large shapes repeat a block
// of random numbers.
struct SyntheticModules {
  torch::jit::Module target;
  std::optional<torch::jit::Module> drafter;
};
SyntheticModules make_modules(const SyntheticShape& shape, const Placement& placement,
                              const BytesMade& made = {});

// Bytes of weights that a pass reads: blocks and head, of a drafter its fc besides.
std::int64_t target_bytes(const torch::jit::Module& target, const SyntheticShape& shape);
std::int64_t drafter_bytes(const torch::jit::Module& drafter, const SyntheticShape& shape);

}  // namespace lamplighter
