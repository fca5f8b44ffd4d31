#include "draft/windows/refine.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/zeros.h>

#include <optional>
#include <utility>
#include <vector>

#include "draft/adapt/adaptation.h"
#include "draft/drafters/children.h"
#include "draft/method.h"

namespace lamplighter {
namespace {

// models/heads/refine.py has the network.
class Refiner {
 public:
  explicit Refiner(const DraftModel& network) : module_(network.module()) {}
  // The target's guided hidden states [I, L, H] and the stale tokens to which they attended, int64 [I, L],
  // -1: there is none -> [I, L, 2 K].
  at::Tensor read(const at::Tensor& hidden, const at::Tensor& stale) const {
    return module_("read", {hidden, stale});
  }
  // One position of that, [I, 1, 2 K], the state [I, 1, K] of the position before, at first zeros, and its
  // new token int64 [I, 1] -> [I, 1, K].
  at::Tensor step(const at::Tensor& read, const at::Tensor& state, const at::Tensor& tokens) const {
    return module_("step", {read, state, tokens});
  }
  // A state [I, 1, K] -> the correction [I, 1, V] of the target's logits.
  at::Tensor logits(const at::Tensor& state) const { return module_("logits", {state}); }

 private:
  const Module& module_;
};

// L = positions of the window, nodes behind the root of a chain.
class Refine : public DraftMethod {
 public:
  Refine(const Method& method, const Models& models)
      : refiner_(*models.drafter),
        target_(*models.target),
        sampled_(method.verify.sampled),
        keep_(method.window.keep && sampled_),
        shape_(shape_of(*method.tree)),
        topology_(topology(*method.tree, models.target->placement().device)),
        adaptation_(adapted_window(method)) {
    for (std::int64_t depth = 0; depth < shape_.depth; ++depth)
      children_.push_back(children_at(*method.tree, depth, topology_.parents.device()));
  }

  TreeShape shape() const override { return shape_; }
  bool replayable() const override { return !adaptation_; }

  void allocate(const RunShape& shape, std::int64_t /*rows*/) override {
    const Placement& placement = target_.placement();
    const auto like = at::dtype(placement.dtype).device(placement.device);
    const auto& target = target_.manifest().target;
    offsets_ = at::arange(shape_.depth, like.dtype(at::kLong));
    sequences_ = at::arange(shape.sequences(), offsets_.options()).unsqueeze(1);
    hidden_ = at::zeros({shape.images, shape_.depth, target.hidden}, like);
    known_ = at::zeros({shape.images, shape.sequences() / shape.images, shape_.depth, target.head}, like);
    stale_ = at::full({shape.images, shape_.depth}, -1, offsets_.options());
    if (adaptation_) adaptation_->allocate(shape);
    if (!keep_) return;
    previous_tokens_ = stale_.clone();
    previous_probs_ = at::zeros({shape.images, shape_.depth, target.head}, like.dtype(at::kFloat));
    parents_ = offsets_.new_zeros({1, 2}).index_fill(1, offsets_.new_zeros({1}), -1);
    draft_rows_ = parents_.flip(1);
    none_accepted_ = offsets_.new_full({shape.images}, -1);
  }

  Draft draft(const RunState& run) override {
    const at::Tensor read = refiner_.read(hidden_, stale_);
    at::Tensor state = at::zeros({read.size(0), 1, read.size(2) / 2}, read.options());
    at::Tensor token = run.counters.root.unsqueeze(1);
    std::vector<at::Tensor> tokens{token};
    std::vector<ops::Distributions> probs;
    at::Tensor uniforms;
    if (keep_)
      uniforms = ops::uniforms(run.seeds, run.counters.steps, ops::Purpose::window, kUniforms * shape_.depth);
    std::optional<BatchSizes> sizes;
    if (adaptation_) sizes = batch_sizes(adaptation_->next(run), token.device());
    const std::int64_t depth = sizes ? sizes->largest.depth : shape_.depth;
    for (std::int64_t position = 0; position < depth; ++position) {
      state = refiner_.step(read.narrow(1, position, 1), state, token.clamp_min(0));
      // The same for both halves of a pair, so guidance leaves it as it is.
      const at::Tensor logits = known_.narrow(2, position, 1) + refiner_.logits(state).unsqueeze(1);
      SampledChildren children = keep_ ? keep_or_sample(run, position, logits.flatten(0, 1), token, uniforms)
                                       : sample_children(run, children_[static_cast<std::size_t>(position)],
                                                         logits.flatten(0, 1), sampled_);
      probs.push_back(std::move(children.distributions));
      token = children.tokens;
      tokens.push_back(token);
    }
    Draft draft{topology_, at::cat(tokens, 1), ops::cat(probs)};
    if (sizes) shorten(*sizes, draft);
    return draft;
  }

  // Position k of the next window is that of node count + 1 + k. Positions behind the last node read that
  // node, the nearest there is.
  void update(const Draft& draft, const Scores& scores, const Verified& verified,
              const RunState& run) override {
    if (adaptation_) adaptation_->learn(draft, verified, run);
    const std::int64_t last = draft.tokens.size(1) - 1;
    const at::Tensor node = verified.walk.count.unsqueeze(1) + 1 + offsets_;  // [I, L]
    at::Tensor row = node.clamp_max(last), behind = node > last;
    if (adaptation_) {
      const at::Tensor own_last = (draft.tokens >= 0).sum(1, true).clamp_min(1) - 1;  // [I, 1]
      row = at::minimum(node, own_last);
      behind = node > own_last;
    }
    stale_.copy_(draft.tokens.gather(1, row).masked_fill(behind, -1));
    const at::Tensor rows = numbers(per_sequence(row, run.guided), last + 1);
    hidden_.copy_(guided(picked(scores.hidden, rows), run, row));
    at::Tensor known = known_.view({rows.size(0), -1});
    at::index_select_out(known, verified.target.values.flatten(0, 1), 0, rows);
    known_.masked_fill_((stale_ < 0).unsqueeze(1).unsqueeze(3), 0);
    if (!keep_) return;
    const at::Tensor draft_here = node + 1;
    previous_tokens_.copy_(
        draft.tokens.gather(1, draft_here.clamp_max(last)).masked_fill(draft_here > last, -1));
    if (last > 0)
      previous_probs_.copy_(picked(draft.distributions.values, numbers(node.clamp_max(last - 1), last)));
  }

  std::vector<PerImage> per_image() override {
    std::vector<PerImage> all{{&hidden_}, {&known_}, {&stale_}};
    if (keep_) all.insert(all.end(), {{&previous_tokens_}, {&previous_probs_}});
    if (adaptation_) all.push_back(adaptation_->per_image());
    return all;
  }

 private:
  static constexpr std::int64_t kUniforms = 4;  // of a position, as renew_window takes them for two nodes

  // The previous draft of the position stays where the new distribution allows it (SCD's coupling): then the
  // rows behind it saw the token that stands there. logits [S, 1, V]; token int64 [I, 1], the one before it.
  SampledChildren keep_or_sample(const RunState& run, std::int64_t position, const at::Tensor& logits,
                                 const at::Tensor& token, const at::Tensor& uniforms) const {
    const at::Tensor& depths = children_[static_cast<std::size_t>(position)].depths;
    const ops::Distributions distribution = distributions(run, run.draft_filter, logits, depths);
    const auto both = [](const at::Tensor& row) { return row.expand({-1, 2, -1}).contiguous(); };
    const auto [children, row] =
        ops::renew_window({{both(distribution.values), both(distribution.statistics)},
                           previous_probs_.narrow(1, position, 1).contiguous(),
                           at::cat({token, previous_tokens_.narrow(1, position, 1)}, 1),
                           parents_,
                           draft_rows_,
                           uniforms.narrow(1, kUniforms * position, kUniforms).contiguous(),
                           run.temperature,
                           1},
                          none_accepted_.narrow(0, 0, token.size(0)), true);
    return {children, row};
  }

  // int64 [S * L]: rows `index` [S, L] of sequences with `count` rows each, as rows of all sequences
  // together.
  at::Tensor numbers(const at::Tensor& index, std::int64_t count) const {
    return (index + sequences_.narrow(0, 0, index.size(0)) * count).flatten();
  }

  // Picks rows [S, L, ..] of rows [S, N, ..] by their numbers int64 [S * L]. Copying whole rows is faster
  // than rows_at for rows as wide as the head.
  at::Tensor picked(const at::Tensor& rows, const at::Tensor& numbers) const {
    return rows.flatten(0, 1).index_select(0, numbers).view({rows.size(0), shape_.depth, -1});
  }

  // Guides hidden rows [S, L, H] of what follows nodes int64 [I, L]: one row a pair.
  static at::Tensor guided(const at::Tensor& rows, const RunState& run, const at::Tensor& nodes) {
    if (!run.guided) return rows;
    at::Tensor scale = run.guidance;
    if (scale.size(1) > 1)
      scale = scale.gather(1, (run.counters.steps.unsqueeze(1) + nodes).clamp_max(scale.size(1) - 1));
    const at::Tensor conditional = rows.slice(0, 0, rows.size(0), 2).to(at::kFloat);
    const at::Tensor unconditional = rows.slice(0, 1, rows.size(0), 2).to(at::kFloat);
    return unconditional + scale.unsqueeze(2) * (conditional - unconditional);
  }

  const Refiner refiner_;
  const Target& target_;
  bool sampled_;
  bool keep_;  // WindowOptions::keep
  TreeShape shape_;
  Topology topology_;
  std::optional<Adaptation> adaptation_;  // absent: all windows have L positions
  std::vector<Children> children_;        // by depth
  at::Tensor offsets_;                    // int64 [L]: 0, 1, ..
  at::Tensor sequences_;                  // int64 [S, 1]: 0, 1, ..
  at::Tensor hidden_;                     // [I, L, H]: rows of the pass before, guided
  at::Tensor known_;  // [I, P, L, V]: their logits, P sequences an image; 0: there is no row
  at::Tensor stale_;  // int64 [I, L]: the tokens that these rows saw; -1: there is no row
  // Only with keep_: the previous drafts int64 [I, L], -1: none, and their distributions fp32 [I, L, V]; a
  // chain of two nodes for renew_window, int64 [1, 2] each, of which none is accepted, int64 [I].
  at::Tensor previous_tokens_, previous_probs_, parents_, draft_rows_, none_accepted_;
};

}  // namespace

std::unique_ptr<DraftMethod> make_refine(const Method& method, const Models& models) {
  return std::make_unique<Refine>(method, models);
}

}  // namespace lamplighter
