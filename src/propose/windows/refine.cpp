#include "propose/windows/refine.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <utility>
#include <vector>

#include "propose/drafters/children.h"
#include "propose/method.h"

namespace lamplighter {
namespace {

// L = slots of the window, nodes behind the root of a chain.
class Refine : public Proposer {
 public:
  Refine(const Method& method, const Models& models)
      : drafter_(*models.drafter),
        target_(*models.target),
        sampled_(method.judge.sampled),
        keep_(method.window.keep && sampled_),
        shape_(shape_of(*method.tree)),
        topology_(topology(*method.tree, models.target->placement().device)) {
    for (std::int64_t depth = 0; depth < shape_.depth; ++depth)
      children_.push_back(children_at(*method.tree, depth, topology_.parents.device()));
  }

  TreeShape shape() const override { return shape_; }

  void allocate(const RunShape& shape, std::int64_t /*rows*/) override {
    const Placement& placement = target_.placement();
    const auto like = at::dtype(placement.dtype).device(placement.device);
    const auto& target = target_.manifest().target;
    slots_ = at::arange(shape_.depth, like.dtype(at::kLong));
    sequences_ = at::arange(shape.sequences(), slots_.options()).unsqueeze(1);
    hidden_ = at::zeros({shape.images, shape_.depth, target.hidden}, like);
    known_ = at::zeros({shape.images, shape.sequences() / shape.images, shape_.depth, target.head}, like);
    stale_ = at::full({shape.images, shape_.depth}, -1, slots_.options());
    if (!keep_) return;
    stood_ = stale_.clone();
    laws_ = at::zeros({shape.images, shape_.depth, target.head}, like.dtype(at::kFloat));
    parents_ = slots_.new_zeros({1, 2}).index_fill(1, slots_.new_zeros({1}), -1);
    draft_rows_ = parents_.flip(1);
    before_ = slots_.new_full({shape.images}, -1);
  }

  Draft propose(const RunState& run) override {
    const at::Tensor read = drafter_.read(hidden_, stale_);
    at::Tensor state = at::zeros({read.size(0), 1, read.size(2) / 2}, read.options());
    at::Tensor token = run.root.unsqueeze(1);
    std::vector<at::Tensor> tokens{token};
    std::vector<ops::Distributions> laws;
    at::Tensor uniforms;
    if (keep_) uniforms = ops::uniforms(run.seeds, run.steps, ops::Purpose::window, kUniforms * shape_.depth);
    for (std::int64_t slot = 0; slot < shape_.depth; ++slot) {
      state = drafter_.refine(read.narrow(1, slot, 1), state, token.clamp_min(0));
      // The same for both halves of a pair, so guidance leaves it as it is.
      const at::Tensor logits = known_.narrow(2, slot, 1) + drafter_.logits(state).unsqueeze(1);
      DrawnChildren drawn = keep_ ? keep_or_draw(run, slot, logits.flatten(0, 1), token, uniforms)
                                  : draw_children(run, children_[static_cast<std::size_t>(slot)],
                                                  logits.flatten(0, 1), sampled_);
      laws.push_back(std::move(drawn.distributions));
      token = drawn.tokens;
      tokens.push_back(token);
    }
    return {topology_, at::cat(tokens, 1), ops::cat(laws)};
  }

  // Slot k of the next window stands where node count + 1 + k did; of one behind the last node that node is
  // read, which is the nearest there is.
  void learn(const Draft& draft, const Scores& scores, const Judged& judged, const KeptRows& /*kept*/,
             const RunState& run) override {
    const std::int64_t last = draft.tokens.size(1) - 1;
    const at::Tensor node = judged.count.unsqueeze(1) + 1 + slots_;  // [I, L]
    const at::Tensor row = node.clamp_max(last);
    stale_.copy_(draft.tokens.gather(1, row).masked_fill(node > last, -1));
    const at::Tensor rows = numbers(per_sequence(row, run.guided), last + 1);
    hidden_.copy_(guided(picked(scores.hidden, rows), run, row));
    at::Tensor known = known_.view({rows.size(0), -1});
    at::index_select_out(known, judged.target.values.flatten(0, 1), 0, rows);
    known_.masked_fill_((stale_ < 0).unsqueeze(1).unsqueeze(3), 0);
    if (!keep_) return;
    const at::Tensor draft_here = node + 1;
    stood_.copy_(draft.tokens.gather(1, draft_here.clamp_max(last)).masked_fill(draft_here > last, -1));
    if (last > 0) laws_.copy_(picked(draft.distributions.values, numbers(node.clamp_max(last - 1), last)));
  }

  std::vector<PerImage> per_image() override {
    std::vector<PerImage> all{{&hidden_}, {&known_}, {&stale_}};
    if (keep_) all.insert(all.end(), {{&stood_}, {&laws_}});
    return all;
  }

 private:
  static constexpr std::int64_t kUniforms = 4;  // a slot's, as renew_window takes them for two nodes

  // The draft that stood in the slot stays where its new law lets it (SCD's coupling): then the rows behind
  // it saw the token that stands there. logits [S, 1, V]; token int64 [I, 1], that in front.
  DrawnChildren keep_or_draw(const RunState& run, std::int64_t slot, const at::Tensor& logits,
                             const at::Tensor& token, const at::Tensor& uniforms) const {
    const at::Tensor& depths = children_[static_cast<std::size_t>(slot)].depths;
    const ops::Distributions law = distributions(run, run.draft_filter, logits, depths);
    const auto both = [](const at::Tensor& row) { return row.expand({-1, 2, -1}).contiguous(); };
    const auto [drawn, row] = ops::renew_window({{both(law.values), both(law.statistics)},
                                                 laws_.narrow(1, slot, 1).contiguous(),
                                                 at::cat({token, stood_.narrow(1, slot, 1)}, 1),
                                                 parents_,
                                                 draft_rows_,
                                                 uniforms.narrow(1, kUniforms * slot, kUniforms).contiguous(),
                                                 run.temperature,
                                                 1},
                                                before_.narrow(0, 0, token.size(0)), true);
    return {drawn, row};
  }

  // int64 [S * L]: the rows that `index` [S, L] names, `count` of every sequence, in those of all sequences.
  at::Tensor numbers(const at::Tensor& index, std::int64_t count) const {
    return (index + sequences_.narrow(0, 0, index.size(0)) * count).flatten();
  }

  // Rows [S, L, ..] of the N of every sequence, by their numbers int64 [S * L] in rows [S, N, ..].
  // Whole rows are copied, which for rows as wide as the head is faster than what rows_at does.
  at::Tensor picked(const at::Tensor& rows, const at::Tensor& numbers) const {
    return rows.flatten(0, 1).index_select(0, numbers).view({rows.size(0), shape_.depth, -1});
  }

  // Hidden rows [S, L, H] that say what follows nodes int64 [I, L], as one row a pair.
  static at::Tensor guided(const at::Tensor& rows, const RunState& run, const at::Tensor& nodes) {
    if (!run.guided) return rows;
    at::Tensor scale = run.guidance;
    if (scale.size(1) > 1)
      scale = scale.gather(1, (run.steps.unsqueeze(1) + nodes).clamp_max(scale.size(1) - 1));
    const at::Tensor conditional = rows.slice(0, 0, rows.size(0), 2).to(at::kFloat);
    const at::Tensor unconditional = rows.slice(0, 1, rows.size(0), 2).to(at::kFloat);
    return unconditional + scale.unsqueeze(2) * (conditional - unconditional);
  }

  const Drafter& drafter_;
  const Target& target_;
  bool sampled_;
  bool keep_;  // drafts stay where they may
  TreeShape shape_;
  Topology topology_;
  std::vector<Children> children_;  // by depth
  at::Tensor slots_;                // int64 [L]: 0, 1, ..
  at::Tensor sequences_;            // int64 [S, 1]: 0, 1, ..
  at::Tensor hidden_;               // [I, L, H]: rows of the pass before, guided
  at::Tensor known_;                // [I, P, L, V]: their logits, P sequences an image; 0: there is no row
  at::Tensor stale_;                // int64 [I, L]: the tokens that these rows saw; -1: there is no row
  // Of keep_: the drafts int64 [I, L] that stood in the slots, -1: none did, and their laws fp32 [I, L, V]; a
  // chain of two nodes, int64 [1, 2] each, of which none is committed, int64 [I].
  at::Tensor stood_, laws_, parents_, draft_rows_, before_;
};

}  // namespace

std::unique_ptr<Proposer> make_refine(const Method& method, const Models& models) {
  return std::make_unique<Refine>(method, models);
}

}  // namespace lamplighter
