#include "draft/drafters/self.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <utility>
#include <vector>

#include "draft/drafters/children.h"
#include "draft/method.h"

namespace lamplighter {
namespace {

class Self : public DraftMethod {
 public:
  Self(const Method& method, const Models& models)
      : target_(*models.target),
        layers_(*method.options.draft_layers),
        window_(method.options.draft_window.value_or(0)),
        tree_(*method.tree),
        sampled_(method.verify.sampled) {
    const c10::Device device = target_.placement().device;
    topology_ = topology(tree_, device);
    for (std::int64_t depth = 0; depth < tree_.max_depth(); ++depth) {
      children_.push_back(children_at(tree_, depth, device));
      std::vector<std::int64_t> rows;  // nodes of the level with children
      for (const std::int64_t node : tree_.expanded_level(depth)) rows.push_back(node - begin(depth));
      expanded_.push_back(some_of(rows, begin(depth + 1) - begin(depth), device));
    }
  }

  TreeShape shape() const override { return shape_of(tree_); }

  void allocate(const RunShape& shape, std::int64_t rows) override {
    prompt_lengths_ = at::zeros({shape.sequences()}, topology_.parents.options());
    // Every position behind a prompt has a bit.
    columns_ = (rows + tree_.size() + 63) / 64 * 64;
  }

  void begin(const Prompts& prompts, const Prefilled& /*prefilled*/, const RunState& /*run*/) override {
    prompt_lengths_.copy_(prompts.valid - 1);  // the last one is a root
  }

  std::vector<PerImage> per_image() override { return {{&prompt_lengths_, 0}}; }

  Draft draft(const RunState& run) override {
    // Where row ends join a pass, it does not continue from the drafted hidden states.
    const bool resumed = window_ == 0 && run.columns == 0;
    const std::int64_t levels = tree_.max_depth() + (resumed ? 1 : 0);
    const at::Tensor windows = window_ > 0 ? window_bits(run) : at::Tensor();
    std::vector<at::Tensor> tokens{run.counters.root.unsqueeze(1)}, rows;
    std::vector<ops::Distributions> distributions;
    for (std::int64_t depth = 0; depth < levels; ++depth) {
      const auto level = static_cast<std::size_t>(depth);
      Target::Part part = run_level(run, depth, tokens[level], windows);
      rows.push_back(std::move(part.residual));
      if (depth == tree_.max_depth()) break;
      const at::Tensor logits = target_.logits(select(part.hidden, expanded_[level]));
      SampledChildren chosen = sample_children(run, children_[level], logits, sampled_);
      tokens.push_back(std::move(chosen.tokens));
      distributions.push_back(std::move(chosen.distributions));
    }
    Draft draft{topology_, at::cat(tokens, 1), ops::cat(distributions)};
    if (resumed) draft.partial = {at::cat(rows, 1), layers_};
    return draft;
  }

 private:
  std::int64_t begin(std::int64_t depth) const { return tree_.level_begin[static_cast<std::size_t>(depth)]; }

  // int64 [I, N, W]: the positions behind the prompt to which every node attends, the newest ones of the
  // image and its ancestors.
  at::Tensor window_bits(const RunState& run) const {
    const std::int64_t step = run.guided ? 2 : 1;  // both halves of a pair have the same length
    const at::Tensor committed = (run.counters.lengths - prompt_lengths_)
                                     .slice(0, 0, run.counters.lengths.size(0), step)
                                     .view({-1, 1, 1});
    const at::Tensor column =
        at::arange(columns_, committed.options()) - committed;  // [I, 1, C], from the root on
    const at::Tensor newest = column.lt(0).logical_and(column.ge(-window_));
    const at::Tensor mask = topology_.mask.expand({column.size(0), -1, -1});  // [I, N, 1]
    const at::Tensor above = mask.bitwise_right_shift(column.clamp(0, 63)).bitwise_and(1).gt(0);
    const at::Tensor inside = column.ge(0).logical_and(column.lt(tree_.size()));
    return to_bits(newest.logical_or(above.logical_and(inside)));
  }

  // Runs all nodes of a depth behind the nodes above.
  Target::Part run_level(const RunState& run, std::int64_t depth, const at::Tensor& codes,
                         const at::Tensor& windows) const {
    const std::int64_t first = begin(depth), width = codes.size(1);
    const auto of_level = [&](const at::Tensor& nodes) { return nodes.narrow(1, first, width).contiguous(); };
    const auto [ids, positions] = ops::tree_rows(codes, of_level(topology_.depths), run.counters.position,
                                                 run.counters.first_image_id, run.counters.last_position);
    const at::Tensor prefix = windows.defined() ? prompt_lengths_ : run.counters.lengths;
    const at::Tensor lengths = at::stack({prefix, run.counters.lengths + first});
    return target_.forward_layers(0, layers_, target_.embed(ids), positions,
                                  of_level(windows.defined() ? windows : topology_.mask), lengths, run.cache);
  }

  const Target& target_;
  std::int64_t layers_;  // of the target, the first ones
  std::int64_t window_;  // newest tokens of the image that they see; 0: all
  const Tree& tree_;
  bool sampled_;
  Topology topology_;
  std::vector<Children> children_;    // by depth
  std::vector<at::Tensor> expanded_;  // int64, the nodes of a depth that have children
  at::Tensor prompt_lengths_;         // int64 [S], prompt positions in the cache
  std::int64_t columns_ = 0;          // positions behind a prompt that have a bit
};

}  // namespace

std::unique_ptr<DraftMethod> make_self(const Method& method, const Models& models) {
  return std::make_unique<Self>(method, models);
}

}  // namespace lamplighter
