#include "draft/drafters/children.h"

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
  for (const std::int64_t node : nodes) children.samples = std::max(children.samples, tree.child_count(node));
  std::vector<std::int64_t> child_index;
  for (std::int64_t row = 0; row < width; ++row) {
    const auto node = static_cast<std::size_t>(nodes[static_cast<std::size_t>(row)]);
    for (std::int64_t child = tree.child_begin[node]; child < tree.child_begin[node + 1]; ++child)
      child_index.push_back(row * children.samples + tree.rank[static_cast<std::size_t>(child)]);
  }
  children.child_index = some_of(child_index, width * children.samples, device);
  return children;
}

SampledChildren sample_children(const RunState& run, const Children& children, const at::Tensor& logits,
                                bool sampled) {
  const auto [distributions, chosen] =
      ops::draft_children(logits, filtering(run, run.draft_filter, children.depths, children.nodes.size(0)),
                          {run.seeds, run.counters.steps, children.nodes, children.samples, sampled});
  return {select(chosen.flatten(1), children.child_index), distributions};
}

}  // namespace lamplighter
