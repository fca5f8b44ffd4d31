#include "propose/seam.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace lamplighter {

Target::Output Models::run(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& tree_mask,
                           const at::Tensor& lengths, const at::Tensor& cache) const {
  if (drafter == nullptr || drafter->entry().feature_layers.empty())
    return target->forward(x, positions, tree_mask, lengths, cache);
  const at::Tensor layers = at::tensor(drafter->entry().feature_layers, at::kLong);
  return target->forward_features(layers, x, positions, tree_mask, lengths, cache);
}

at::Tensor integers(const std::vector<std::int64_t>& values, const c10::Device& device) {
  return at::tensor(values, at::kLong).to(device);
}

at::Tensor to_bits(const at::Tensor& bools) {
  const at::Tensor places = at::arange(64, at::dtype(at::kLong).device(bools.device()));
  return bools.unflatten(-1, {-1, 64}).to(at::kLong).bitwise_left_shift(places).sum(-1);
}

Topology topology(const Tree& tree, const c10::Device& device) {
  const auto row = [&](const std::vector<std::int64_t>& values) {
    return integers(values, device).unsqueeze(0);
  };
  Topology nodes{row(tree.parent), row(tree.draft_row), row(tree.depth), {}};
  if (tree.drafted() == 0) {
    nodes.mask = at::empty({0}, nodes.parents.options());
  } else {
    nodes.mask = row({tree.ancestors.begin(), tree.ancestors.end()}).unsqueeze(2);
  }
  return nodes;
}

Topology first_nodes(const Topology& nodes, std::int64_t count) {
  const auto first = [count](const at::Tensor& all) { return all.narrow(1, 0, count).clone(); };
  Topology chain{first(nodes.parents), first(nodes.draft_rows), first(nodes.depths), first(nodes.mask)};
  chain.draft_rows.select(1, count - 1).fill_(-1);
  return chain;
}

TreeShape shape_of(const Tree& tree) {
  std::vector<std::int64_t> widths(static_cast<std::size_t>(tree.max_depth()) + 1);
  for (const std::int64_t depth : tree.depth) ++widths[static_cast<std::size_t>(depth)];
  return {tree.size(), tree.max_depth(), *std::max_element(widths.begin(), widths.end())};
}

at::Tensor per_sequence(const at::Tensor& per_image, bool guided) {
  return guided ? per_image.repeat_interleave(2, 0) : per_image;
}

at::Tensor rows_at(const at::Tensor& rows, const at::Tensor& index) {
  return rows.gather(1, index.unsqueeze(2).expand({-1, -1, rows.size(2)}));
}

ops::Distributions rows_at(const ops::Distributions& rows, const at::Tensor& index) {
  const bool pairs = rows.values.size(0) != index.size(0);
  at::Tensor values = rows_at(rows.values, per_sequence(index, pairs));
  if (!rows.statistics.defined()) return values;
  return {std::move(values), rows_at(rows.statistics, index)};
}

namespace {

// The guidance scale fp32 [I], or [I, R] where tokens differ in it.
at::Tensor row_guidance(const RunState& run, const at::Tensor& depths, std::int64_t rows) {
  const std::int64_t known = run.guidance.size(1);
  if (known == 1) return run.guidance.squeeze(1);
  const at::Tensor index = run.steps.unsqueeze(1) + depths;  // of the token that a row decides
  return run.guidance.gather(1, index.clamp_max(known - 1).expand({-1, rows}));
}

}  // namespace

ops::Filtering filtering(const RunState& run, const Filter& filter, const at::Tensor& depths,
                         std::int64_t rows) {
  return {row_guidance(run, depths, rows), filter.temperature, filter.top_k, filter.top_p,
          run.sampling_order};
}

ops::Distributions distributions(const RunState& run, const Filter& filter, const at::Tensor& logits,
                                 const at::Tensor& depths) {
  return ops::guide_and_filter(logits, filtering(run, filter, depths, logits.size(1)));
}

}  // namespace lamplighter
