#include "draft/draft.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

namespace lamplighter {

at::Tensor integers(const std::vector<std::int64_t>& values, const c10::Device& device) {
  return at::tensor(values, at::kLong).to(device);
}

at::Tensor to_bits(const at::Tensor& bools) {
  const at::Tensor shifts = at::arange(64, at::dtype(at::kLong).device(bools.device()));
  return bools.unflatten(-1, {-1, 64}).to(at::kLong).bitwise_left_shift(shifts).sum(-1);
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
  TreeShape shape{tree.size(), tree.max_depth(), *std::max_element(widths.begin(), widths.end())};
  shape.chain = shape.widest == 1;
  return shape;
}

}  // namespace lamplighter
