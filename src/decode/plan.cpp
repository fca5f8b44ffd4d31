#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "decode/method.h"

namespace lamplighter {
namespace {

at::Tensor integers(const std::vector<std::int64_t>& values, const c10::Device& device) {
  return at::tensor(values, at::kLong).to(device);
}

// The same as an index into `count` entries; undefined when it selects all of them in order.
at::Tensor index(const std::vector<std::int64_t>& values, std::int64_t count, const c10::Device& device) {
  bool all = static_cast<std::int64_t>(values.size()) == count;
  for (std::size_t i = 0; all && i < values.size(); ++i) all = values[i] == static_cast<std::int64_t>(i);
  return all ? at::Tensor() : integers(values, device);
}

// first_column: rows that the drafter has run before the next level.
TreePlan::Level make_level(const Tree& tree, std::int64_t depth, std::int64_t& first_column,
                           const c10::Device& device) {
  TreePlan::Level level;
  const std::vector<std::int64_t> nodes = tree.expanded_level(depth);
  const auto width = static_cast<std::int64_t>(nodes.size());
  level.nodes = integers(nodes, device);
  level.depths = at::full_like(level.nodes, depth).unsqueeze(0);
  for (const std::int64_t node : nodes) level.draws = std::max(level.draws, tree.child_count(node));
  std::vector<std::int64_t> picks, next, parent_rows, masks;
  for (std::int64_t row = 0; row < width; ++row) {
    const auto node = static_cast<std::size_t>(nodes[static_cast<std::size_t>(row)]);
    for (std::int64_t child = tree.child_begin[node]; child < tree.child_begin[node + 1]; ++child) {
      picks.push_back(row * level.draws + tree.rank[static_cast<std::size_t>(child)]);
      if (tree.child_count(child) == 0) continue;
      next.push_back(static_cast<std::int64_t>(picks.size()) - 1);
      parent_rows.push_back(row);
      // Column j is the (j + 1)-th expanded node: the root's row is in the committed prefix.
      std::uint64_t bits = 0;
      for (const std::int64_t above : tree.nodes_to(child)) {
        if (above != 0) bits |= std::uint64_t{1} << (tree.draft_row[static_cast<std::size_t>(above)] - 1);
      }
      masks.push_back(static_cast<std::int64_t>(bits));
      if (next.size() == 1) first_column = tree.draft_row[static_cast<std::size_t>(child)] - 1;
    }
  }
  level.picks = index(picks, width * level.draws, device);
  level.next_count = static_cast<std::int64_t>(next.size());
  level.next = index(next, static_cast<std::int64_t>(picks.size()), device);
  level.parent_rows = index(parent_rows, width, device);
  level.next_mask = integers(masks, device).view({1, -1, 1});
  return level;
}

}  // namespace

TreePlan make_plan(const Method& method, const c10::Device& device) {
  const Tree& tree = method.tree;
  TreePlan plan;
  plan.parents = integers(tree.parent, device).unsqueeze(0);
  plan.draft_rows = integers(tree.draft_row, device).unsqueeze(0);
  plan.depths = integers(tree.depth, device).unsqueeze(0);
  std::vector<std::int64_t> rows_before, own_bits;
  if (tree.drafted() == 0) {
    plan.mask = at::empty({0}, plan.parents.options());
  } else {
    const std::vector<std::int64_t> bits(tree.ancestors.begin(), tree.ancestors.end());
    plan.mask = integers(bits, device).view({1, -1, 1});
    for (std::int64_t depth = 0; depth < tree.max_depth(); ++depth) {
      std::int64_t first_column = 0;
      plan.levels.push_back(make_level(tree, depth, first_column, device));
      if (plan.levels.back().next_count > 0) rows_before.insert(rows_before.end(), {0, first_column});
    }
  }
  if (method.is_dynamic()) {
    const std::int64_t rows = method.dynamic.passes * method.dynamic.width;
    for (std::int64_t row = 0; row < rows; ++row) {
      if (row % method.dynamic.width == 0) rows_before.insert(rows_before.end(), {0, row});
      own_bits.push_back(static_cast<std::int64_t>(std::uint64_t{1} << row));
    }
    plan.own_bits = integers(own_bits, device).view({method.dynamic.passes, -1});
  }
  plan.rows_before = integers(rows_before, device).view({-1, 2, 1});
  return plan;
}

}  // namespace lamplighter
