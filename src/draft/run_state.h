#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "kernels/ops.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

// The state of a run that both the decode loop and the methods read. I = images, S = sequences: I, or 2 I
// interleaved pairs (conditional, then unconditional row of each image) when any image is guided. V = codes
// that the head can give.
namespace lamplighter {

// How logits become the distribution that tokens are sampled from, one entry per image.
struct Filter {
  at::Tensor temperature;  // fp32 [I]
  at::Tensor top_k;        // int64 [I]
  at::Tensor top_p;        // fp32 [I]
};

// The sizes of a run, fixed before it begins.
struct RunShape {
  const Grid* grid = nullptr;
  std::int64_t images = 1;         // batch slots
  std::int64_t prompt_length = 0;  // of the longest prompt, Prompts::longest()
  bool guided = false;             // sequences are pairs
  bool varying = false;            // the guidance scale may differ from token to token
  bool graph = true;               // on CUDA, cycles are captured and replayed
  bool record = false;             // reports hold the drafted trees and their probabilities
  // Cycles run through run_cycle() without a script: a method may verify and commit in one operator.
  bool whole_cycles = false;
  LogCallback note = {};  // gets a line when capture fails

  std::int64_t sequences() const { return guided ? 2 * images : images; }
};

// Progress and sampling settings of the images of a run. Tensors lie on the target's device and keep their
// addresses from cycle to cycle: changes are written in place, so that a cycle can be captured once and
// replayed.
struct RunState {
  ops::Counters counters;
  // The target's, [layers, 2, S, kv_heads, slots, head_dim]. Slots behind the committed ones are free between
  // passes.
  at::Tensor cache;
  at::Tensor seeds;            // int64 [I]
  at::Tensor guidance;         // fp32 [I, T], scale of token t, or [I, 1]: of all
  at::Tensor temperature;      // fp32 [I], <= 0: greedy
  Filter target_filter;        // of the distributions that verify
  Filter draft_filter;         // of the distributions that children are sampled from
  std::string sampling_order;  // of the filters, as the manifest says it
  bool guided = false;         // sequences are pairs
  std::int64_t columns = 0;    // codes before every row end; 0: image rows have no end token
  // Cycles have the same shapes and never wait for the device, as capture needs. Otherwise padding is left
  // out where asking for its size is cheaper than running it: on the CPU.
  bool fixed_shapes = false;

  std::int64_t images() const { return seeds.size(0); }
};

// One value per image as one per sequence.
at::Tensor per_sequence(const at::Tensor& per_image, bool guided);
// Rows `index` int64 [S, W] of rows [S, R, F].
at::Tensor rows_at(const at::Tensor& rows, const at::Tensor& index);
// Rows `index` int64 [I, W] of distributions.
ops::Distributions rows_at(const ops::Distributions& rows, const at::Tensor& index);
// Guidance and filter of R rows at `depths` int64 [1 or I, 1 or R] below the last token.
ops::Filtering filtering(const RunState& run, const Filter& filter, const at::Tensor& depths,
                         std::int64_t rows);
// Distributions [I, R, V] of logits [S, R, V]; depths as above.
ops::Distributions distributions(const RunState& run, const Filter& filter, const at::Tensor& logits,
                                 const at::Tensor& depths);

}  // namespace lamplighter
