#include "propose/drafters/self.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <utility>
#include <vector>

#include "propose/drafters/children.h"
#include "propose/method.h"

namespace lamplighter {
namespace {

class Self : public Proposer {
 public:
  Self(const Method& method, const Models& models)
      : target_(*models.target), options_(method.self), tree_(*method.tree), sampled_(method.judge.sampled) {
    const c10::Device device = target_.placement().device;
    topology_ = topology(tree_, device);
    for (std::int64_t depth = 0; depth < tree_.max_depth(); ++depth) {
      children_.push_back(children_at(tree_, depth, device));
      std::vector<std::int64_t> rows;  // of the level, those with children
      for (const std::int64_t node : tree_.expanded_level(depth)) rows.push_back(node - begin(depth));
      expanded_.push_back(some_of(rows, begin(depth + 1) - begin(depth), device));
    }
  }

  TreeShape shape() const override { return shape_of(tree_); }

  void allocate(const RunShape& shape, std::int64_t rows) override {
    prompt_rows_ = at::zeros({shape.sequences()}, topology_.parents.options());
    // Whatever is behind a prompt can be seen or not by a bit.
    columns_ = (rows + tree_.size() + 63) / 64 * 64;
  }

  void begin(const Prompts& prompts, const Prefilled& /*prefilled*/, const RunState& /*run*/) override {
    prompt_rows_.copy_(prompts.valid - 1);  // the last one is a root
  }

  std::vector<PerImage> per_image() override { return {{&prompt_rows_, 0}}; }

  Draft propose(const RunState& run) override {
    // Rows that ends of lines join come to the pass without the drafted ones' beginning.
    const bool resumed = options_.window == 0 && run.columns == 0;
    const std::int64_t levels = tree_.max_depth() + (resumed ? 1 : 0);
    const at::Tensor windows = options_.window > 0 ? window_bits(run) : at::Tensor();
    std::vector<at::Tensor> tokens{run.root.unsqueeze(1)}, rows;
    std::vector<ops::Distributions> distributions;
    for (std::int64_t depth = 0; depth < levels; ++depth) {
      const auto level = static_cast<std::size_t>(depth);
      Target::Part part = run_level(run, depth, tokens[level], windows);
      rows.push_back(std::move(part.residual));
      if (depth == tree_.max_depth()) break;
      const at::Tensor logits = target_.logits(select(part.hidden, expanded_[level]));
      DrawnChildren drawn = draw_children(run, children_[level], logits, sampled_);
      tokens.push_back(std::move(drawn.tokens));
      distributions.push_back(std::move(drawn.distributions));
    }
    Draft draft{topology_, at::cat(tokens, 1), ops::cat(distributions)};
    if (resumed) draft.begun = {at::cat(rows, 1), options_.layers};
    return draft;
  }

 private:
  std::int64_t begin(std::int64_t depth) const { return tree_.level_begin[static_cast<std::size_t>(depth)]; }

  // int64 [I, N, W]: which rows behind the prompt every node sees, the newest ones of the picture and its
  // ancestors.
  at::Tensor window_bits(const RunState& run) const {
    const std::int64_t step = run.guided ? 2 : 1;  // the rows of a picture are as many in both halves
    const at::Tensor drawn =
        (run.lengths - prompt_rows_).slice(0, 0, run.lengths.size(0), step).view({-1, 1, 1});
    const at::Tensor column = at::arange(columns_, drawn.options()) - drawn;  // [I, 1, C], from the root on
    const at::Tensor newest = column.lt(0).logical_and(column.ge(-options_.window));
    const at::Tensor mask = topology_.mask.expand({column.size(0), -1, -1});  // [I, N, 1]
    const at::Tensor above = mask.bitwise_right_shift(column.clamp(0, 63)).bitwise_and(1).gt(0);
    const at::Tensor inside = column.ge(0).logical_and(column.lt(tree_.size()));
    return to_bits(newest.logical_or(above.logical_and(inside)));
  }

  // Runs all nodes of a depth, behind those above.
  Target::Part run_level(const RunState& run, std::int64_t depth, const at::Tensor& codes,
                         const at::Tensor& windows) const {
    const std::int64_t first = begin(depth), width = codes.size(1);
    const auto of_level = [&](const at::Tensor& nodes) { return nodes.narrow(1, first, width).contiguous(); };
    const auto [ids, positions] = ops::tree_rows(codes, of_level(topology_.depths), run.position,
                                                 run.first_image_id, run.last_position);
    const at::Tensor prefix = windows.defined() ? prompt_rows_ : run.lengths;
    const at::Tensor lengths = at::stack({prefix, run.lengths + first});
    return target_.forward_layers(0, options_.layers, target_.embed(ids), positions,
                                  of_level(windows.defined() ? windows : topology_.mask), lengths, run.cache);
  }

  const Target& target_;
  SelfOptions options_;
  const Tree& tree_;
  bool sampled_;
  Topology topology_;
  std::vector<Children> children_;    // by depth
  std::vector<at::Tensor> expanded_;  // int64, the rows of a depth that have children
  at::Tensor prompt_rows_;            // int64 [S], of the cache
  std::int64_t columns_ = 0;          // rows behind a prompt that bits can name
};

}  // namespace

std::unique_ptr<Proposer> make_self(const Method& method, const Models& models) {
  return std::make_unique<Self>(method, models);
}

}  // namespace lamplighter
