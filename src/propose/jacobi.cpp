#include "propose/jacobi.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

namespace lamplighter {
namespace {

// L = slots of the window, the nodes of its chain behind the root.
class Jacobi : public Proposer {
 public:
  Jacobi(const Method& method, const Models& models)
      : options_(method.window),
        shape_(shape_of(*method.tree)),
        topology_(topology(*method.tree, models.target->placement().device)),
        vocabulary_(models.target->manifest().target.head),
        codes_(std::min(vocabulary_, models.target->manifest().tokens.codebook_size)) {}

  TreeShape shape() const override { return shape_; }

  void allocate(const RunShape& shape, std::int64_t /*rows*/) override {
    const c10::Device device = topology_.parents.device();
    const std::int64_t slots = shape_.nodes - 1;
    columns_ = shape.grid->columns;
    slots_ = at::arange(slots, at::dtype(at::kLong).device(device));
    tokens_ = at::full({shape.images, slots}, -1, slots_.options());
    likeliest_ = at::zeros({shape.images}, slots_.options());
    rows_ = at::zeros({shape.images, slots, vocabulary_}, at::dtype(at::kFloat).device(device));
  }

  Draft propose(const RunState& run) override {
    const at::Tensor& left = options_.fill == WindowFill::sample ? likeliest_ : run.root;
    const at::Tensor uniforms = ops::uniforms(run.seeds, run.steps, ops::Purpose::fill, slots_.size(0));
    tokens_.copy_(ops::fill_window(tokens_, rows_,
                                   {uniforms, run.steps, left, run.codes, columns_, codes_, options_.fill}));
    return {topology_, at::cat({run.root.unsqueeze(1), tokens_}, 1), rows_};
  }

  void learn(const Draft& draft, const Scores& /*scores*/, const Judged& judged, const KeptRows& /*kept*/,
             const RunState& run) override {
    if (options_.fill == WindowFill::sample) likeliest_.copy_(judged.final.argmax(1));
    if (draft.tokens.size(1) == 1) {  // the root that a prompt ends with: nothing is known behind it
      tokens_.fill_(-1);
      return;
    }
    const at::Tensor uniforms = ops::uniforms(run.seeds, run.steps, ops::Purpose::window, 2 * shape_.nodes);
    auto [tokens, rows] = ops::renew_window({judged.target, rows_, draft.tokens, draft.parents,
                                             draft.draft_rows, uniforms, run.temperature, shape_.depth},
                                            judged.count, options_.keep);
    if (run.columns > 0) keep_unscored(draft, judged, tokens, rows);
    tokens_.copy_(tokens);
    rows_.copy_(rows);
  }

  std::vector<PerImage> per_image() override { return {{&tokens_}, {&rows_}, {&likeliest_}}; }

 private:
  // Drafts that lay behind the end of a row were not scored: they stay as they are.
  void keep_unscored(const Draft& draft, const Judged& judged, at::Tensor& tokens, at::Tensor& rows) const {
    const at::Tensor place = judged.count.unsqueeze(1) + 1 + slots_;  // [I, L], of the slots before the shift
    const at::Tensor old = place.clamp_max(slots_.size(0) - 1);
    const at::Tensor unscored = (place < slots_.size(0)) & (draft.tokens.slice(1, 1).gather(1, old) < 0);
    tokens = at::where(unscored, tokens_.gather(1, old), tokens);
    const at::Tensor index = old.unsqueeze(2).expand_as(rows_);
    rows = at::where(unscored.unsqueeze(2), rows_.gather(1, index), rows);
  }

  WindowOptions options_;
  TreeShape shape_;
  Topology topology_;
  std::int64_t vocabulary_, codes_;  // V of the head, and the ids of it that are codes
  std::int64_t columns_ = 0;         // codes of a row of the picture
  at::Tensor slots_;                 // int64 [L]: 0, 1, ..
  // The window: codes int64 [I, L], -1: nothing is known, and what they were drawn from, fp32 [I, L, V].
  at::Tensor tokens_, rows_;
  at::Tensor likeliest_;  // int64 [I], at the place of the root
};

}  // namespace

std::unique_ptr<Proposer> make_jacobi(const Method& method, const Models& models) {
  return std::make_unique<Jacobi>(method, models);
}

}  // namespace lamplighter
