#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <utility>

#include "draft/drafters/children.h"
#include "draft/drafters/eagle.h"

namespace lamplighter {
namespace {

// The children of one depth, and which of them the drafter runs next.
struct ChildLevel : Children {
  // The children that have children themselves; none at the last level.
  std::int64_t next_count = 0;  // W'
  at::Tensor next;              // int64 [W'], among the C children
  at::Tensor parent_rows;       // int64 [W'], among this level's W nodes
  at::Tensor next_mask;         // int64 [1, W', 1], ancestors among the nodes that the drafter ran
};

// first_column: nodes that the drafter runs before the next level.
ChildLevel make_level(const Tree& tree, std::int64_t depth, std::int64_t& first_column,
                      const c10::Device& device) {
  ChildLevel level;
  static_cast<Children&>(level) = children_at(tree, depth, device);
  const std::vector<std::int64_t> nodes = tree.expanded_level(depth);
  const auto width = static_cast<std::int64_t>(nodes.size());
  std::vector<std::int64_t> next, parent_rows, masks;
  std::int64_t count = 0;  // children so far
  for (std::int64_t row = 0; row < width; ++row) {
    const auto node = static_cast<std::size_t>(nodes[static_cast<std::size_t>(row)]);
    for (std::int64_t child = tree.child_begin[node]; child < tree.child_begin[node + 1]; ++child) {
      const std::int64_t index = count++;
      if (tree.child_count(child) == 0) continue;
      next.push_back(index);
      parent_rows.push_back(row);
      // Column j is the (j + 1)-th expanded node: the root is in the committed prefix.
      std::uint64_t bits = 0;
      for (const std::int64_t above : tree.nodes_to(child)) {
        if (above != 0) bits |= std::uint64_t{1} << (tree.draft_row[static_cast<std::size_t>(above)] - 1);
      }
      masks.push_back(static_cast<std::int64_t>(bits));
      if (next.size() == 1) first_column = tree.draft_row[static_cast<std::size_t>(child)] - 1;
    }
  }
  level.next_count = static_cast<std::int64_t>(next.size());
  level.next = some_of(next, count, device);
  level.parent_rows = some_of(parent_rows, width, device);
  level.next_mask = integers(masks, device).view({1, -1, 1});
  return level;
}

// EAGLE's static tree.
class EagleStatic : public Eagle {
 public:
  EagleStatic(const Method& method, const Models& models, const Tree& tree)
      : Eagle(method, models), verified_(shape_of(*method.tree)), tree_(tree) {
    const c10::Device device = models.target->placement().device;
    topology_ = topology(tree_, device);
    std::vector<std::int64_t> rows_before;
    for (std::int64_t depth = 0; depth < tree_.max_depth(); ++depth) {
      std::int64_t first_column = 0;
      child_levels_.push_back(make_level(tree_, depth, first_column, device));
      if (child_levels_.back().next_count > 0) rows_before.insert(rows_before.end(), {0, first_column});
    }
    rows_before_ = integers(rows_before, device).view({-1, 2, 1});
  }

  TreeShape shape() const override { return verified_; }

 protected:
  std::int64_t grown_rows() const override { return static_cast<std::int64_t>(tree_.expanded.size()); }

  Draft grow(const RunState& run, at::Tensor hidden) override {
    std::vector<at::Tensor> tokens{run.counters.root.unsqueeze(1)};
    std::vector<ops::Distributions> rows;
    at::Tensor position, level_lengths;  // for the levels below the first
    at::Tensor chance, sure;             // [I, 1], for chains that may end early
    if (child_levels_.size() > 1) {
      position = drafted_half(run.counters.position, run);
      level_lengths = lengths + rows_before_;  // [P, 2, Sd]
    }
    for (std::size_t depth = 0; depth < child_levels_.size(); ++depth) {
      const ChildLevel& level = child_levels_[depth];
      SampledChildren chosen = sample_children(run, level, layer_->logits(hidden), method_.verify.sampled);
      rows.push_back(std::move(chosen.distributions));
      tokens.push_back(std::move(chosen.tokens));
      if (sure.defined()) tokens.back().masked_fill_(sure.logical_not(), -1);
      if (level.next_count == 0) break;
      if (method_.confidence > 0) {
        const at::Tensor likeliest = ops::largest_probabilities(rows.back());
        chance = depth > 0 ? chance * likeliest : likeliest;
        sure = chance >= method_.confidence;
        if (!run.fixed_shapes && !sure.any().item<bool>()) break;
      }
      const Level next{select(tokens.back(), level.next), select(hidden, level.parent_rows),
                       level.depths.narrow(1, 0, 1), level.next_mask};
      hidden = run_level(run, next, position, level_lengths[static_cast<std::int64_t>(depth)]);
    }
    const auto levels = static_cast<std::int64_t>(tokens.size());
    const bool ended = levels <= tree_.max_depth();
    return {ended ? first_nodes(topology_, levels) : topology_, at::cat(tokens, 1), ops::cat(rows)};
  }

 private:
  TreeShape verified_;
  const Tree& tree_;
  Topology topology_;
  std::vector<ChildLevel> child_levels_;  // by depth
  at::Tensor rows_before_;  // int64 [P, 2, 1]: 0, and the nodes run before, for the P passes below the root
};

}  // namespace

std::unique_ptr<DraftMethod> make_eagle_static(const Method& method, const Models& models, const Tree& tree) {
  return std::make_unique<EagleStatic>(method, models, tree);
}

}  // namespace lamplighter
