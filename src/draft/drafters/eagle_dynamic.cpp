#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <tuple>

#include "draft/drafters/eagle.h"

namespace lamplighter {
namespace {

// EAGLE-2's trees (Li et al. 2024, section 4): the drafter's most probable paths.
class EagleDynamic : public Eagle {
 public:
  EagleDynamic(const Method& method, const Models& models)
      : Eagle(method, models),
        passes_(*method.options.dynamic_depth),
        width_(*method.options.dynamic_width),
        nodes_(*method.options.dynamic_nodes) {
    std::vector<std::int64_t> rows_before, own_bits;
    for (std::int64_t row = 0; row < passes_ * width_; ++row) {
      if (row % width_ == 0) rows_before.insert(rows_before.end(), {0, row});
      own_bits.push_back(static_cast<std::int64_t>(std::uint64_t{1} << row));
    }
    const c10::Device device = models.target->placement().device;
    rows_before_ = integers(rows_before, device).view({-1, 2, 1});
    own_bits_ = integers(own_bits, device).view({passes_, -1});
  }

  TreeShape shape() const override { return {nodes_ + 1, passes_ + 1, nodes_ + 1}; }

 protected:
  std::int64_t grown_rows() const override { return passes_ * width_; }

  Draft grow(const RunState& run, at::Tensor hidden) override {
    const at::Tensor position = drafted_half(run.counters.position, run);  // int64 [Sd]
    const at::Tensor level_lengths = lengths + rows_before_;               // int64 [P, 2, Sd]
    // Candidates of every pass, k below the root and then k * k, and the expanded ones of the pass before.
    std::vector<at::Tensor> pool_tokens, pool_scores;  // int64, fp32 [I, k] or [I, k * k]
    std::vector<at::Tensor> frontiers;                 // int64 [I, k]

    at::Tensor depths = at::zeros({1, 1}, run.counters.steps.options());       // of the frontier
    at::Tensor scores = at::zeros({run.images(), 1}, run.guidance.options());  // fp32 [I, 1 or k], of it
    at::Tensor mask;  // int64 [I, k], its ancestors among all nodes that the drafter ran
    for (std::int64_t pass = 0;; ++pass) {
      const ops::Distributions rows = distributions(run, run.draft_filter, layer_->logits(hidden), depths);
      auto [tokens, candidate_scores, frontier] = ops::expand_dynamic(rows, scores, width_);
      pool_tokens.push_back(tokens);
      pool_scores.push_back(candidate_scores);
      if (pass == passes_) break;
      frontiers.push_back(frontier);
      const at::Tensor parents = frontier.floor_divide(width_);  // int64 [I, k], slots of the last frontier
      const at::Tensor bits = own_bits_.narrow(0, pass, 1);      // int64 [1, k]
      mask = pass == 0 ? bits.expand({run.images(), -1}) : mask.gather(1, parents).bitwise_or(bits);
      const Level next{tokens.gather(1, frontier),
                       rows_at(hidden, per_sequence(parents, run.guided && !method_.conditional)), depths,
                       mask.unsqueeze(2).contiguous()};
      hidden = run_level(run, next, position, level_lengths[pass]);
      scores = candidate_scores.gather(1, frontier);
      depths = depths + 1;
    }

    Draft tree;
    std::tie(tree.tokens, tree.nodes.parents, tree.nodes.depths, tree.nodes.mask, std::ignore) =
        ops::rerank_dynamic(at::cat(pool_tokens, 1), at::cat(pool_scores, 1), at::stack(frontiers, 1),
                            nodes_);
    tree.tokens.select(1, 0).copy_(run.counters.root);
    tree.nodes.draft_rows = at::full_like(tree.nodes.parents, -1);
    return tree;
  }

 private:
  std::int64_t passes_;     // P, expansions after the first
  std::int64_t width_;      // k, nodes expanded per level
  std::int64_t nodes_;      // drafted nodes kept
  at::Tensor rows_before_;  // int64 [P, 2, 1]: 0, and the nodes that the drafter ran before a pass
  at::Tensor own_bits_;     // int64 [P, k], the bit of each node of a pass
};

}  // namespace

std::unique_ptr<DraftMethod> make_eagle_dynamic(const Method& method, const Models& models) {
  return std::make_unique<EagleDynamic>(method, models);
}

}  // namespace lamplighter
