#include "propose/drafters/mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <utility>
#include <vector>

#include "propose/drafters/children.h"
#include "propose/drafters/hidden_state.h"
#include "propose/method.h"

namespace lamplighter {
namespace {

class Mlp : public Proposer {
 public:
  Mlp(const Method& method, const Models& models)
      : drafter_(*models.drafter),
        sampled_(method.judge.sampled),
        tree_(*method.tree),
        topology_(topology(tree_, models.target->placement().device)),
        hidden_(method, *models.target) {
    const c10::Device device = topology_.parents.device();
    for (std::int64_t depth = 0; depth < tree_.max_depth(); ++depth) {
      Level level;
      level.children = children_at(tree_, depth, device);
      std::vector<std::int64_t> next, parents;  // nodes of the next depth that have children
      const std::vector<std::int64_t> own = tree_.expanded_level(depth);
      const std::int64_t begin = tree_.level_begin[static_cast<std::size_t>(depth) + 1];
      for (std::size_t row = 0; row < own.size(); ++row) {
        const auto node = static_cast<std::size_t>(own[row]);
        for (std::int64_t child = tree_.child_begin[node]; child < tree_.child_begin[node + 1]; ++child) {
          if (tree_.child_count(child) == 0) continue;
          next.push_back(child - begin);
          parents.push_back(static_cast<std::int64_t>(row));
        }
      }
      level.next = some_of(next, tree_.level_begin[static_cast<std::size_t>(depth) + 2] - begin, device);
      level.parents = some_of(parents, static_cast<std::int64_t>(own.size()), device);
      levels_.push_back(std::move(level));
    }
  }

  TreeShape shape() const override { return shape_of(tree_); }
  void allocate(const RunShape& shape, std::int64_t /*rows*/) override { hidden_.allocate(shape); }
  std::vector<PerImage> per_image() override { return {hidden_.per_image()}; }

  Draft propose(const RunState& run) override {
    at::Tensor state = hidden_.rows(), codes = run.root.unsqueeze(1);
    std::vector<at::Tensor> tokens{codes};
    std::vector<ops::Distributions> laws;
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      const Level& level = levels_[depth];
      const auto number = static_cast<std::int64_t>(depth);
      const at::Tensor ids = codes.clamp_min(0) + run.first_image_id;
      state = drafter_.step(state, hidden_.per_sequence_of(ids, run), number);
      DrawnChildren drawn =
          draw_children(run, level.children, drafter_.logits_after(state, number), sampled_);
      laws.push_back(std::move(drawn.distributions));
      tokens.push_back(drawn.tokens);
      codes = select(drawn.tokens, level.next);
      state = select(state, level.parents);
    }
    return {topology_, at::cat(tokens, 1), ops::cat(laws)};
  }

  void learn(const Draft& /*draft*/, const Scores& scores, const Judged& judged, const KeptRows& /*kept*/,
             const RunState& run) override {
    hidden_.learn(scores, judged, run);
  }

 private:
  struct Level {
    Children children;
    // Those of them that have children themselves, and which rows of this level are their parents.
    at::Tensor next, parents;
  };

  const Drafter& drafter_;
  bool sampled_;
  const Tree& tree_;
  Topology topology_;
  HiddenState hidden_;
  std::vector<Level> levels_;  // by depth
};

}  // namespace

std::unique_ptr<Proposer> make_mlp(const Method& method, const Models& models) {
  return std::make_unique<Mlp>(method, models);
}

}  // namespace lamplighter
