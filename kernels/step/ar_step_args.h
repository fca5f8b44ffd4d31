#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/commit/commit_args.h"
#include "kernels/common/exported.h"
#include "kernels/sampling/sampling_args.h"

namespace lamplighter {
namespace ops {

// What a step of autoregressive decoding samples from; meanings in kernels/step/ar_step.h.
struct ArStep {
  at::Tensor logits;  // [S, 1, V], of the last tokens
  Filtering filtering;
  at::Tensor seeds;        // int64 [I]
  at::Tensor temperature;  // fp32 [I]; <= 0: greedy
  at::Tensor logits_rows;  // int64 [I, 1], rows of the pass: 0 or the row end's; undefined: 0
};

// Samples the next token of every image, appends it and advances the counters, in place.
LAMPLIGHTER_EXPORTED void ar_step(const ArStep& step, Counters& state);

}  // namespace ops

struct ArStepArgs;

// Arguments checked and turned into what kernels take, without the memory for statistics.
LAMPLIGHTER_EXPORTED ArStepArgs ar_step_args(const ops::ArStep& step, ops::Counters& state);

}  // namespace lamplighter
