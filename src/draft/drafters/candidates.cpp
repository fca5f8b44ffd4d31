#include "draft/drafters/candidates.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <vector>

namespace lamplighter {

Candidates::Candidates(const Method& method, const Tree& tree, const c10::Device& device)
    : sampled_(method.verify.sampled),
      depth_(tree.max_depth()),
      count_(tree.max_children()),
      topology_(topology(tree, device)),
      depths_(at::arange(depth_, topology_.parents.options())) {
  std::vector<std::int64_t> indices,
      rows;  // of drafted nodes among the candidates; of all nodes among the distributions
  for (std::size_t node = 0; node < tree.depth.size(); ++node) {
    if (node > 0) indices.push_back((tree.depth[node] - 1) * count_ + tree.rank[node]);
    rows.push_back(tree.draft_row[node] < 0 ? -1 : tree.depth[node]);
  }
  child_index_ = integers(indices, device);
  topology_.draft_rows = integers(rows, device).unsqueeze(0);
}

Draft Candidates::draft(const RunState& run, const at::Tensor& logits) const {
  const at::Tensor rows = logits.narrow(1, 0, depth_).contiguous();
  const auto [probs, tokens] =
      ops::draft_children(rows, filtering(run, run.draft_filter, depths_.unsqueeze(0), depth_),
                          {run.seeds, run.counters.steps, depths_, count_, sampled_});
  const at::Tensor drafted = tokens.flatten(1).index_select(1, child_index_);
  return {topology_, at::cat({run.counters.root.unsqueeze(1), drafted}, 1), probs};
}

}  // namespace lamplighter
