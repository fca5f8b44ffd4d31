#include "decode/open_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

namespace lamplighter {

at::Tensor chain_depths(const at::Tensor& tokens) {
  return at::arange(tokens.size(1), tokens.options()).unsqueeze(0);
}

Judged draw_open_rows(const RunState& run, const Draft& draft, ops::Distributions target) {
  const std::int64_t nodes = draft.tokens.size(1);
  // The first row's number is the one that a tree of the root alone would be drawn with.
  const at::Tensor uniforms = ops::uniforms(run.seeds, run.steps, ops::Purpose::accept, nodes);
  const at::Tensor drawn = ops::draw(target, uniforms, run.temperature);  // [I, N]
  const at::Tensor number = chain_depths(draft.tokens);                   // [1, N]
  const at::Tensor closed = number >= draft.open.unsqueeze(1);
  const at::Tensor bad = (drawn < 0).logical_and(closed.logical_not()).any(1);
  Judged judged;
  judged.count = draft.open - 1;
  judged.path = number.expand_as(closed).masked_fill(closed, -1);
  judged.token = drawn.gather(1, judged.count.unsqueeze(1)).squeeze(1).masked_fill(bad, -1);
  judged.status = at::zeros_like(judged.count);
  judged.chain =
      at::cat({draft.tokens.narrow(1, 0, 1), drawn.narrow(1, 0, nodes - 1)}, 1).masked_fill(closed, -1);
  judged.target = std::move(target);
  return judged;
}

}  // namespace lamplighter
