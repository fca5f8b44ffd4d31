#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/commit/commit_args.h"
#include "kernels/common/exported.h"
#include "kernels/sampling/sampling_args.h"
#include "tree/window_fill.h"

namespace lamplighter {
namespace ops {

// What a cycle of speculative Jacobi decoding verifies, a chain of N nodes; meanings in
// kernels/step/window_step.h.
struct WindowStep {
  at::Tensor logits;  // [S, N, V]
  Filtering filtering;
  at::Tensor seeds;          // int64 [I]
  at::Tensor temperature;    // fp32 [I]; <= 0: greedy
  at::Tensor tokens;         // int64 [I, N], the root first; < 0: not scored
  at::Tensor depths;         // int64 [1, N]: 0, 1, ..
  at::Tensor logits_rows;    // int64 [I, N], rows of the pass: a node's own or its row end's; undefined: own
  std::int64_t columns = 0;  // codes of a row of the image
  std::int64_t codes = 0;    // ids of the V that are codes, the first ones
  WindowFill fill = WindowFill::uniform;
  bool keep = true;
};

// The window between cycles, changed in place.
struct WindowState {
  at::Tensor tokens;      // int64 [I, N]: the root, then the drafts
  at::Tensor guessed;     // bool [I, N]
  at::Tensor logits;      // [S, N, V], of the dtype of the target's
  at::Tensor statistics;  // fp32 [I, N, kRowStatistics]
  at::Tensor masses;      // fp64 [I, N]
  at::Tensor ids;         // int64 [S, N], rows of the next pass
  at::Tensor positions;   // int64 [S, N]
  at::Tensor finished;    // int32 [I], zeros
};

// Rows of the pass whose slots stay.
struct WindowRows {
  at::Tensor rows;   // int64 [I, N + 1], the root first, then -1
  at::Tensor count;  // int64 [I], those behind the root
};

// Verifies and renews the window of every image, appends what is accepted and advances the counters.
LAMPLIGHTER_EXPORTED WindowRows window_step(const WindowStep& step, WindowState& window, Counters& state);

}  // namespace ops

struct WindowStepArgs;

// Arguments checked and turned into what kernels take, without their memory and results.
LAMPLIGHTER_EXPORTED WindowStepArgs window_step_args(const ops::WindowStep& step, ops::WindowState& window,
                                                     ops::Counters& state);
// Memory and results of the kernels; sets their addresses.
struct WindowStepMemory {
  at::Tensor statistics, verdicts, path;
  ops::WindowRows rows;
};
LAMPLIGHTER_EXPORTED WindowStepMemory window_step_memory(WindowStepArgs& args, const ops::WindowStep& step);

}  // namespace lamplighter
