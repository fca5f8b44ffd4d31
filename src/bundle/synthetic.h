#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bundle/module.h"

namespace lamplighter {

// Sizes of a LlamaGen-like decoder (Sun et al. 2024) and of the EAGLE drafter that goes with it.
struct SyntheticShape {
  std::string name = "toy";
  std::int64_t vocabulary = 8;  // ids of the head: codes
  std::int64_t hidden = 16, layers = 2, heads = 2, kv_heads = 2, head_dim = 8, ffn = 32;
  std::int64_t prompt_length = 3, prompt_features = 8;
  int rows = 2, columns = 2;
  bool row_ends = false;     // a forced token, id `vocabulary`, between the rows of codes
  SamplingOptions sampling;  // the manifest's defaults
  bool drafter = true;       // one layer of the same sizes, with an embedding and a head of its own
  double weight_scale = 1;   // standard deviation of a weight times the root of its inputs
  std::uint64_t seed = 1;    // of the weights
};

// A bundle that was never written: modules with random weights, and the manifest that describes them. It has
// no image decoder and no text encoder.
struct SyntheticBundle {
  Manifest manifest;
  Module target;
  std::optional<Module> drafter;   // manifest.drafters has its entry under "synthetic"
  std::int64_t target_bytes = 0;   // weights that a pass reads: blocks and head
  std::int64_t drafter_bytes = 0;  // the same of the drafter: fc, block and head
};

// The shapes of published models: llamagen-l-256, llamagen-xl-256, llamagen-xl-512.
std::vector<std::string> synthetic_names();
// One of them. Throws Error(ExitCode::usage) that lists them.
SyntheticShape synthetic_shape(const std::string& name);

// Makes the modules with the operators and entry points of exported ones, in the dtype and on the device of
// `placement`. Weights of large shapes repeat a block of random numbers. Throws Error(memory).
SyntheticBundle make_synthetic(const SyntheticShape& shape, const Placement& placement);

}  // namespace lamplighter
