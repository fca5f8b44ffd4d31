#pragma once

#include "draft/draft.h"
#include "draft/run_state.h"

namespace lamplighter {

// The chains of a row-parallel draft, each as an image of its own with its row of `target` fp32 [I, N, V],
// probabilities. A node's k-th of `kinds` uniforms does not depend on which other rows and nodes there are.
ops::ScoredTree chains_of(const RunState& run, const Draft& draft, const ParallelWindows& windows,
                          const at::Tensor& target, ops::Purpose purpose, std::int64_t kinds);

// Bools [I, N, N]: which nodes a node sees of a pass with `tokens` int64 [I, N] at `positions` int64 [I, N]:
// its own chain up to itself, and of other chains what stands at or before its position: the newest codes,
// and with `drafts` the drafts, too.
at::Tensor seen_in_pass(const at::Tensor& tokens, const ParallelWindows& windows, const at::Tensor& positions,
                        bool drafts);

}  // namespace lamplighter
