#include "decode/row_ends.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace lamplighter {
namespace {

constexpr std::int64_t kBeyond = std::int64_t{1} << 20;  // deeper than any tree

// Depth int64 [I, 1] of the nodes that hold the last code of a row; beyond every tree when that is the last
// row of the image. A node at depth d holds code steps - 1 + d.
at::Tensor end_depth(const RunState& run) {
  const at::Tensor depth = at::remainder(-run.counters.steps, run.columns);
  return depth.masked_fill(run.counters.steps + depth >= run.counters.total, kBeyond).unsqueeze(1);
}

}  // namespace

at::Tensor own_bits(std::int64_t nodes, std::int64_t row_ends, const c10::Device& device) {
  const std::int64_t words = (nodes + row_ends + 63) / 64;
  at::Tensor bits = at::zeros({1, row_ends, words}, at::kLong);
  auto* data = bits.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < row_ends; ++i) {
    const std::int64_t column = nodes + i;
    data[i * words + column / 64] = static_cast<std::int64_t>(std::uint64_t{1} << (column % 64));
  }
  return bits.to(device);
}

void stop_at_row_ends(const RunState& run, Draft& draft) {
  const bool drafted = draft.tokens.size(1) > 1;
  if (run.columns > 0 && drafted)
    draft.tokens = draft.tokens.masked_fill(draft.nodes.depths > end_depth(run), -1);
}

PassRows pass_rows(const DecodeState& state, const Draft& draft) {
  PassRows pass{state.run.counters.first_image_id, draft.tokens, draft.nodes.depths, draft.nodes.mask, {}};
  if (state.run.columns == 0) return pass;
  const std::int64_t images = state.run.images(), nodes = draft.tokens.size(1);
  const at::Tensor end = end_depth(state.run);                                        // [I, 1]
  const at::Tensor last = draft.nodes.depths.eq(end).logical_and(draft.tokens >= 0);  // [I, N]
  const at::Tensor number = last.cumsum(1);  // [I, N], 1, 2, ... of those
  const std::int64_t added = state.run.fixed_shapes ? state.row_end_bits.size(1)
                                                    : number.select(1, nodes - 1).max().item<std::int64_t>();
  if (added == 0) return pass;

  const at::Tensor own = at::arange(nodes, number.options()).expand({images, nodes});  // [I, N]
  pass.logits_row = at::where(last, number + (nodes - 1), own);
  // The node in front of each row end, [I, added]. Slot `added` takes what has no row end.
  const at::Tensor parents = at::zeros({images, added + 1}, number.options())
                                 .scatter_(1, (number - 1).masked_fill(last.logical_not(), added), own)
                                 .narrow(1, 0, added);
  const at::Tensor ids = draft.tokens.clamp_min(0) + state.run.counters.first_image_id;  // [I, N]
  pass.codes = at::cat({ids, at::full_like(parents, state.run.counters.row_end)}, 1);
  pass.first_id = 0;
  pass.depths = at::cat({draft.nodes.depths.expand({images, nodes}), (end + 1).expand({images, added})}, 1);

  const std::int64_t words = (nodes + added + 63) / 64;  // W
  // [1, added, W]; drafts may be smaller than the largest ones, which the state has bits for.
  const at::Tensor bits = nodes == state.tree.nodes
                              ? state.row_end_bits.narrow(1, 0, added).narrow(2, 0, words)
                              : own_bits(nodes, added, number.device());
  const at::Tensor seen = draft.nodes.mask.numel() > 0
                              ? draft.nodes.mask
                              : at::ones({1, 1, 1}, number.options());  // a root alone sees itself
  // [I, N, W] and [I, added, W]
  const at::Tensor by_node = at::constant_pad_nd(seen, {0, words - 1}).expand({images, nodes, words});
  const at::Tensor by_end = by_node.gather(1, parents.unsqueeze(2).expand({images, added, words}));
  pass.mask = at::cat({by_node, by_end.bitwise_or(bits)}, 1);
  return pass;
}

}  // namespace lamplighter
