#include "propose/drafters/children.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>

#include <algorithm>

namespace lamplighter {

at::Tensor some_of(const std::vector<std::int64_t>& values, std::int64_t count, const c10::Device& device) {
  bool all = static_cast<std::int64_t>(values.size()) == count;
  for (std::size_t i = 0; all && i < values.size(); ++i) all = values[i] == static_cast<std::int64_t>(i);
  return all ? at::Tensor() : integers(values, device);
}

at::Tensor select(const at::Tensor& values, const at::Tensor& index) {
  return index.defined() ? values.index_select(1, index) : values;
}

Children children_at(const Tree& tree, std::int64_t depth, const c10::Device& device) {
  Children children;
  const std::vector<std::int64_t> nodes = tree.expanded_level(depth);
  const auto width = static_cast<std::int64_t>(nodes.size());
  children.nodes = integers(nodes, device);
  children.depths = at::full_like(children.nodes, depth).unsqueeze(0);
  for (const std::int64_t node : nodes) children.draws = std::max(children.draws, tree.child_count(node));
  std::vector<std::int64_t> picks;
  for (std::int64_t row = 0; row < width; ++row) {
    const auto node = static_cast<std::size_t>(nodes[static_cast<std::size_t>(row)]);
    for (std::int64_t child = tree.child_begin[node]; child < tree.child_begin[node + 1]; ++child)
      picks.push_back(row * children.draws + tree.rank[static_cast<std::size_t>(child)]);
  }
  children.picks = some_of(picks, width * children.draws, device);
  return children;
}

DrawnChildren draw_children(const RunState& run, const Children& children, const at::Tensor& logits,
                            bool sampled) {
  const auto [distributions, drawn, conditional] =
      ops::draft_children(logits, filtering(run, run.draft_filter, children.depths, children.nodes.size(0)),
                          {run.seeds, run.steps, children.nodes, children.draws, sampled});
  return {select(drawn.flatten(1), children.picks), distributions};
}

}  // namespace lamplighter
