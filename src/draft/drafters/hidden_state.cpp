#include "draft/drafters/hidden_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

namespace lamplighter {

HiddenState::HiddenState(const Method& method, const Target& target)
    : conditional_(method.conditional),
      like_(at::empty({0}, at::dtype(target.placement().dtype).device(target.placement().device))),
      width_(target.manifest().target.hidden) {}

void HiddenState::allocate(const RunShape& shape) {
  rows_ = at::zeros({conditional_ ? shape.images : shape.sequences(), 1, width_}, like_.options());
}

void HiddenState::update(const Scores& scores, const Verified& verified, const RunState& run) {
  const at::Tensor last = verified.walk.path.gather(1, verified.walk.count.unsqueeze(1));
  const at::Tensor rows = rows_at(scores.hidden, per_sequence(last, run.guided));
  rows_.copy_(conditional_ && run.guided ? rows.slice(0, 0, rows.size(0), 2) : rows);
}

at::Tensor HiddenState::per_sequence_of(const at::Tensor& per_image, const RunState& run) const {
  return per_sequence(per_image, run.guided && !conditional_);
}

}  // namespace lamplighter
