#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "decode/method.h"

namespace lamplighter {
namespace {

at::Tensor integers(const std::vector<std::int64_t>& values, const c10::Device& device) {
  return at::tensor(values, at::kLong).to(device);
}

TreePlan::Level make_level(const Tree& tree, std::int64_t depth, const c10::Device& device) {
  TreePlan::Level level;
  const std::vector<std::int64_t> nodes = tree.expanded_level(depth);
  level.nodes = integers(nodes, device);
  for (const std::int64_t node : nodes) level.draws = std::max(level.draws, tree.child_count(node));
  std::vector<std::int64_t> picks, next, parent_rows, masks;
  for (std::size_t row = 0; row < nodes.size(); ++row) {
    const auto node = static_cast<std::size_t>(nodes[row]);
    for (std::int64_t child = tree.child_begin[node]; child < tree.child_begin[node + 1]; ++child) {
      const auto c = static_cast<std::size_t>(child);
      picks.push_back(static_cast<std::int64_t>(row) * level.draws + tree.rank[c]);
      if (tree.child_count(child) == 0) continue;
      next.push_back(child);
      parent_rows.push_back(static_cast<std::int64_t>(row));
      // Column j is the (j + 1)-th expanded node: the root's row is in the committed prefix.
      std::uint64_t bits = 0;
      for (const std::int64_t ancestor : tree.nodes_to(child)) {
        if (ancestor != 0)
          bits |= std::uint64_t{1} << (tree.draft_row[static_cast<std::size_t>(ancestor)] - 1);
      }
      masks.push_back(static_cast<std::int64_t>(bits));
    }
  }
  level.begin = tree.child_begin[static_cast<std::size_t>(nodes.front())];
  level.end = level.begin + static_cast<std::int64_t>(picks.size());
  level.picks = integers(picks, device);
  level.next = integers(next, device);
  level.parent_rows = integers(parent_rows, device);
  level.next_mask = integers(masks, device).view({1, -1, 1});
  level.first_column = next.empty() ? 0 : tree.draft_row[static_cast<std::size_t>(next.front())] - 1;
  return level;
}

}  // namespace

TreePlan make_plan(const Tree& tree, const c10::Device& device) {
  TreePlan plan;
  plan.parents = integers(tree.parent, device).unsqueeze(0);
  plan.draft_rows = integers(tree.draft_row, device).unsqueeze(0);
  plan.depths = integers(tree.depth, device).unsqueeze(0);
  if (tree.drafted() == 0) {
    plan.mask = at::empty({0}, plan.parents.options());
    return plan;
  }
  const std::vector<std::int64_t> bits(tree.ancestors.begin(), tree.ancestors.end());
  plan.mask = integers(bits, device).view({1, -1, 1});
  for (std::int64_t depth = 0; depth < tree.max_depth(); ++depth)
    plan.levels.push_back(make_level(tree, depth, device));
  return plan;
}

}  // namespace lamplighter
