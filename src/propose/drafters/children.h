#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "propose/seam.h"

// Drawing the children of all nodes of one depth of a static tree.
namespace lamplighter {

// Which entries of a dimension are taken. Undefined where an index would name all of them in order.
at::Tensor some_of(const std::vector<std::int64_t>& values, std::int64_t count, const c10::Device& device);
// The entries of dimension 1 that an index above names.
at::Tensor select(const at::Tensor& values, const at::Tensor& index);

// The nodes of one depth that have children, W of them, and their C children.
struct Children {
  at::Tensor nodes, depths;  // int64 [W] and [1, W]
  std::int64_t draws = 0;    // most children of one of them
  at::Tensor picks;          // int64 [C]: which of W * draws drawn tokens are the children
};
Children children_at(const Tree& tree, std::int64_t depth, const c10::Device& device);

struct DrawnChildren {
  at::Tensor tokens;                 // int64 [I, C]
  ops::Distributions distributions;  // [I, W, V], that they were drawn from
};
// logits [Sd, W, V] of what follows the nodes; `sampled`: drawn without replacement, else the most probable.
DrawnChildren draw_children(const RunState& run, const Children& children, const at::Tensor& logits,
                            bool sampled);

}  // namespace lamplighter
