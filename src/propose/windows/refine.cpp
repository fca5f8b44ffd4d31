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
  }

  Draft propose(const RunState& run) override {
    const at::Tensor read = drafter_.read(hidden_, stale_);
    at::Tensor state = at::zeros({read.size(0), 1, read.size(2) / 2}, read.options());
    at::Tensor token = run.root.unsqueeze(1);
    std::vector<at::Tensor> tokens{token};
    std::vector<ops::Distributions> laws;
    for (std::int64_t slot = 0; slot < shape_.depth; ++slot) {
      state = drafter_.refine(read.narrow(1, slot, 1), state, token.clamp_min(0));
      // The same for both halves of a pair, so guidance leaves it as it is.
      const at::Tensor logits = known_.narrow(2, slot, 1) + drafter_.logits(state).unsqueeze(1);
      DrawnChildren drawn =
          draw_children(run, children_[static_cast<std::size_t>(slot)], logits.flatten(0, 1), sampled_);
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
    at::Tensor rows = per_sequence(row, run.guided);  // [S, L], then their numbers in those of all sequences
    rows = (rows + sequences_.narrow(0, 0, rows.size(0)) * (last + 1)).flatten();
    hidden_.copy_(guided(picked(scores.hidden, rows), run, row));
    at::Tensor known = known_.view({rows.size(0), -1});
    at::index_select_out(known, judged.target.values.flatten(0, 1), 0, rows);
    known_.masked_fill_((stale_ < 0).unsqueeze(1).unsqueeze(3), 0);
  }

  std::vector<PerImage> per_image() override { return {{&hidden_}, {&known_}, {&stale_}}; }

 private:
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
  TreeShape shape_;
  Topology topology_;
  std::vector<Children> children_;  // by depth
  at::Tensor slots_;                // int64 [L]: 0, 1, ..
  at::Tensor sequences_;            // int64 [S, 1]: 0, 1, ..
  at::Tensor hidden_;               // [I, L, H]: rows of the pass before, guided
  at::Tensor known_;                // [I, P, L, V]: their logits, P sequences an image; 0: there is no row
  at::Tensor stale_;                // int64 [I, L]: the tokens that these rows saw; -1: there is no row
};

}  // namespace

std::unique_ptr<Proposer> make_refine(const Method& method, const Models& models) {
  return std::make_unique<Refine>(method, models);
}

}  // namespace lamplighter
