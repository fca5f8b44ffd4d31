#include "draft/drafters/mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <utility>
#include <vector>

#include "draft/drafters/children.h"
#include "draft/drafters/hidden_state.h"
#include "draft/method.h"

namespace lamplighter {
namespace {

class MlpSpeculator {
 public:
  explicit MlpSpeculator(const DraftModel& network) : network_(network), module_(network.module()) {}
  // States [S, R, I] after tokens int64 [S, R], from the states before them; in step 0 from hidden states
  // [S, R, H] of the target.
  at::Tensor step(const at::Tensor& state, const at::Tensor& ids, std::int64_t number) const {
    return module_("step", {state, ids, at::scalar_tensor(number, at::kLong)});
  }
  // The state [S, R, I] of a step -> [S, R, V], V codes.
  at::Tensor logits(const at::Tensor& state, std::int64_t number, std::int64_t codes) const {
    at::Tensor logits = module_("logits", {state, at::scalar_tensor(number, at::kLong)});
    // A step that the archive does not have gives the state back.
    if (logits.size(-1) != codes) network_.require_heads(number, number + 1);
    return logits;
  }

 private:
  const DraftModel& network_;
  const Module& module_;
};

class Mlp : public DraftMethod {
 public:
  Mlp(const Method& method, const Models& models)
      : speculator_(*models.drafter),
        codes_(models.target->manifest().target.head),
        sampled_(method.verify.sampled),
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

  Draft draft(const RunState& run) override {
    at::Tensor state = hidden_.rows(), codes = run.counters.root.unsqueeze(1);
    std::vector<at::Tensor> tokens{codes};
    std::vector<ops::Distributions> probs;
    for (std::size_t depth = 0; depth < levels_.size(); ++depth) {
      const Level& level = levels_[depth];
      const auto number = static_cast<std::int64_t>(depth);
      const at::Tensor ids = codes.clamp_min(0) + run.counters.first_image_id;
      state = speculator_.step(state, hidden_.per_sequence_of(ids, run), number);
      SampledChildren chosen =
          sample_children(run, level.children, speculator_.logits(state, number, codes_), sampled_);
      probs.push_back(std::move(chosen.distributions));
      tokens.push_back(chosen.tokens);
      codes = select(chosen.tokens, level.next);
      state = select(state, level.parents);
    }
    return {topology_, at::cat(tokens, 1), ops::cat(probs)};
  }

  void update(const Draft& /*draft*/, const Scores& scores, const Verified& verified,
              const RunState& run) override {
    hidden_.update(scores, verified, run);
  }

 private:
  struct Level {
    Children children;
    // The children that have children themselves, and their parents among the nodes of this level.
    at::Tensor next, parents;
  };

  const MlpSpeculator speculator_;
  std::int64_t codes_;
  bool sampled_;
  const Tree& tree_;
  Topology topology_;
  HiddenState hidden_;
  std::vector<Level> levels_;  // by depth
};

}  // namespace

std::unique_ptr<DraftMethod> make_mlp(const Method& method, const Models& models) {
  return std::make_unique<Mlp>(method, models);
}

}  // namespace lamplighter
