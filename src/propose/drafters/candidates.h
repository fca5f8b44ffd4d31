#pragma once

#include "propose/method.h"

namespace lamplighter {

// Candidates of every depth of a tree, drawn without replacement from a law that does not know the tokens
// before them: they are the same under every node, and exact rules keep the target's law (Miao et al. 2024,
// section 4.3). With children top they are the most probable tokens, as published.
class Candidates {
 public:
  Candidates(const Method& method, const Tree& tree, const c10::Device& device);

  // logits [Sd, K, V] of what stands 1 .. K places below the root, K >= depth of the tree.
  Draft draft(const RunState& run, const at::Tensor& logits) const;

 private:
  bool sampled_;
  std::int64_t depth_, count_;  // of the tree; of candidates of a depth
  Topology topology_;
  at::Tensor places_;  // int64 [N - 1], of the depth * count candidates
  at::Tensor depths_;  // int64 [depth]: 0, 1, ..
};

}  // namespace lamplighter
