#pragma once

#include <cstdint>
#include <vector>

#include "draft/draft.h"
#include "draft/run_state.h"
#include "kernels/ops.h"

// Samples the children of all nodes of one depth of a static tree.
namespace lamplighter {

// The index of the chosen entries of a dimension; undefined where it would name all `count` in order.
at::Tensor some_of(const std::vector<std::int64_t>& values, std::int64_t count, const c10::Device& device);
// Selects entries of dimension 1; all of them where the index is undefined.
at::Tensor select(const at::Tensor& values, const at::Tensor& index);

// The W nodes of one depth that have children, and their C children.
struct Children {
  at::Tensor nodes, depths;  // int64 [W] and [1, W]
  std::int64_t samples = 0;  // most children of one node
  at::Tensor child_index;    // int64 [C]: which of the W * samples tokens are the children
};
Children children_at(const Tree& tree, std::int64_t depth, const c10::Device& device);

struct SampledChildren {
  at::Tensor tokens;                 // int64 [I, C]
  ops::Distributions distributions;  // [I, W, V], from which they were sampled
};
// logits [Sd, W, V] of the tokens behind the nodes. `sampled`: samples without replacement, otherwise the
// most probable tokens.
SampledChildren sample_children(const RunState& run, const Children& children, const at::Tensor& logits,
                                bool sampled);

}  // namespace lamplighter
