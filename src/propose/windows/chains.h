#pragma once

#include "kernels/ops.h"
#include "propose/seam.h"

namespace lamplighter {

// The chains of a draft of windows, each an image of its own with its row of `target` fp32 [I, N, V],
// probabilities. The k-th of `kinds` uniforms of a node is its own whatever other rows and nodes there are.
ops::ScoredTree chains_of(const RunState& run, const Draft& draft, const at::Tensor& target,
                          ops::Purpose purpose, std::int64_t kinds);

}  // namespace lamplighter
