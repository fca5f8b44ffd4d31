#pragma once

#include "draft/method.h"

namespace lamplighter {

// Samples the candidates of every depth of a tree without replacement from a distribution that does not
// depend on the tokens before them. All nodes of a depth have the same candidates, and exact rules are
// lossless (Miao et al. 2024, section 4.3). With children top they are the most probable tokens, as
// published.
class Candidates {
 public:
  Candidates(const Method& method, const Tree& tree, const c10::Device& device);

  std::int64_t depth() const { return depth_; }
  // logits [Sd, K, V] of the positions 1 .. K below the root, K >= depth of the tree.
  Draft draft(const RunState& run, const at::Tensor& logits) const;

 private:
  bool sampled_;
  std::int64_t depth_, count_;  // depth of the tree; candidates of a depth
  Topology topology_;
  at::Tensor child_index_;  // int64 [N - 1]: which of the depth * count candidates are nodes
  at::Tensor depths_;       // int64 [depth]: 0, 1, ..
};

}  // namespace lamplighter
