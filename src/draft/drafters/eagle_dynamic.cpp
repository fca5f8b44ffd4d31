#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "draft/adapt/adaptation.h"
#include "draft/drafters/eagle.h"

namespace lamplighter {
namespace {

// What hides candidates from the reranking.
constexpr float kImpossible = -std::numeric_limits<float>::infinity();

// Where the nodes that the drafter runs stand behind the committed rows, `width` of them in every pass.
struct PassColumns {
  at::Tensor rows_before;  // int64 [P, 2, 1]: 0, and the nodes that the drafter ran before a pass
  at::Tensor own_bits;     // int64 [P, width], the bit of each node of a pass
};

PassColumns pass_columns(std::int64_t passes, std::int64_t width, const c10::Device& device) {
  std::vector<std::int64_t> rows_before, own_bits;
  for (std::int64_t row = 0; row < passes * width; ++row) {
    if (row % width == 0) rows_before.insert(rows_before.end(), {0, row});
    own_bits.push_back(static_cast<std::int64_t>(std::uint64_t{1} << row));
  }
  return {integers(rows_before, device).view({passes, 2, 1}),
          integers(own_bits, device).view({passes, width})};
}

// EAGLE-2's trees (Li et al. 2024, section 4): the drafter's most probable paths.
class EagleDynamic : public Eagle {
 public:
  EagleDynamic(const Method& method, const Models& models)
      : Eagle(method, models),
        passes_(*method.options.dynamic_depth),
        width_(*method.options.dynamic_width),
        nodes_(*method.options.dynamic_nodes),
        columns_(pass_columns(passes_, width_, models.target->placement().device)) {
    if (method.adapts) adaptation_.emplace(&bisected_sizes, DraftSize{1, 1}, DraftSize{passes_ + 1, width_});
  }

  bool replayable() const override { return !adaptation_; }

  TreeShape shape() const override { return {nodes_ + 1, passes_ + 1, nodes_ + 1}; }

  void allocate(const RunShape& shape, std::int64_t rows) override {
    Eagle::allocate(shape, rows);
    if (adaptation_) adaptation_->allocate(shape);
  }

  void update(const Draft& draft, const Scores& scores, const Verified& verified,
              const RunState& run) override {
    Eagle::update(draft, scores, verified, run);
    if (adaptation_) adaptation_->learn(draft, verified, run);
  }

  std::vector<PerImage> per_image() override {
    std::vector<PerImage> all = Eagle::per_image();
    if (adaptation_) all.push_back(adaptation_->per_image());
    return all;
  }

 protected:
  std::int64_t grown_rows() const override { return passes_ * width_; }

  Draft grow(const RunState& run, at::Tensor hidden) override {
    std::optional<BatchSizes> sizes;
    if (adaptation_) sizes = batch_sizes(adaptation_->next(run), lengths.device());
    const std::int64_t passes = sizes ? sizes->largest.depth - 1 : passes_;
    const std::int64_t width = sizes ? sizes->largest.width : width_;
    const PassColumns columns = width == width_ ? columns_ : pass_columns(passes, width, lengths.device());
    const at::Tensor position = drafted_half(run.counters.position, run);  // int64 [Sd]
    const at::Tensor level_lengths = lengths + columns.rows_before;        // int64 [P, 2, Sd]
    // Candidates of every pass, k below the root and then k * k, and the expanded ones of the pass before.
    std::vector<at::Tensor> pool_tokens, pool_scores;  // int64, fp32 [I, k] or [I, k * k]
    std::vector<at::Tensor> frontiers;                 // int64 [I, k]

    at::Tensor depths = at::zeros({1, 1}, run.counters.steps.options());       // of the frontier
    at::Tensor scores = at::zeros({run.images(), 1}, run.guidance.options());  // fp32 [I, 1 or k], of it
    at::Tensor mask;  // int64 [I, k], its ancestors among all nodes that the drafter ran
    for (std::int64_t pass = 0;; ++pass) {
      const ops::Distributions rows = distributions(run, run.draft_filter, layer_->logits(hidden), depths);
      auto [tokens, candidate_scores, frontier] = ops::expand_dynamic(rows, scores, width);
      if (sizes) hide_others(*sizes, pass, candidate_scores);
      pool_tokens.push_back(tokens);
      pool_scores.push_back(candidate_scores);
      if (pass == passes) break;
      frontiers.push_back(frontier);
      const at::Tensor parents = frontier.floor_divide(width);  // int64 [I, k], paths of the last frontier
      const at::Tensor bits = columns.own_bits.narrow(0, pass, 1);  // int64 [1, k]
      mask = pass == 0 ? bits.expand({run.images(), -1}) : mask.gather(1, parents).bitwise_or(bits);
      const Level next{tokens.gather(1, frontier),
                       rows_at(hidden, per_sequence(parents, run.guided && !method_.conditional)), depths,
                       mask.unsqueeze(2).contiguous()};
      hidden = run_level(run, next, position, level_lengths[pass]);
      scores = candidate_scores.gather(1, frontier);
      if (sizes) hide_others(*sizes, pass, scores);
      depths = depths + 1;
    }

    Draft tree;
    std::tie(tree.tokens, tree.nodes.parents, tree.nodes.depths, tree.nodes.mask, std::ignore) =
        ops::rerank_dynamic(at::cat(pool_tokens, 1), at::cat(pool_scores, 1),
                            frontiers.empty() ? pool_tokens.front().new_zeros({run.images(), 0, width})
                                              : at::stack(frontiers, 1),
                            std::min(nodes_, width + passes * width * width));
    tree.tokens.select(1, 0).copy_(run.counters.root);
    tree.nodes.draft_rows = at::full_like(tree.nodes.parents, -1);
    return tree;
  }

 private:
  // Candidates [I, paths * width], or their scores in the order of the next paths: the scores of those that
  // are beyond an image's own depth or width. The best of a narrow tree are the first of a wide one.
  static void hide_others(const BatchSizes& sizes, std::int64_t pass, at::Tensor& scores) {
    const at::Tensor rank = at::arange(scores.size(1), sizes.widths.options()).remainder(sizes.largest.width);
    scores.masked_fill_(rank.ge(sizes.widths).logical_or(sizes.depths.le(pass)), kImpossible);
  }

  std::int64_t passes_;  // P, expansions after the first
  std::int64_t width_;   // k, nodes expanded per level
  std::int64_t nodes_;   // drafted nodes kept
  PassColumns columns_;
  std::optional<Adaptation> adaptation_;  // absent: all trees have this size
};

}  // namespace

std::unique_ptr<DraftMethod> make_eagle_dynamic(const Method& method, const Models& models) {
  return std::make_unique<EagleDynamic>(method, models);
}

}  // namespace lamplighter
