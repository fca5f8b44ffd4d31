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
// row of the picture. A node at depth d holds code steps - 1 + d.
at::Tensor end_depth(const RunState& run) {
  const at::Tensor depth = at::remainder(-run.steps, run.columns);
  return depth.masked_fill(run.steps + depth >= run.total, kBeyond).unsqueeze(1);
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

void stop_at_row_ends(const RunState& run, Draft& tree) {
  const bool drafted = tree.tokens.size(1) > 1;
  if (run.columns > 0 && drafted) tree.tokens = tree.tokens.masked_fill(tree.depths > end_depth(run), -1);
}

PassRows pass_rows(const DecodeState& state, const Draft& tree) {
  PassRows pass{state.first_image_id, tree.tokens, tree.depths, tree.mask, {}};
  if (state.columns == 0) return pass;
  const std::int64_t images = state.images(), nodes = tree.tokens.size(1);
  const at::Tensor end = end_depth(state);                                    // [I, 1]
  const at::Tensor last = tree.depths.eq(end).logical_and(tree.tokens >= 0);  // [I, N]
  const at::Tensor number = last.cumsum(1);                                   // [I, N], 1, 2, ... of those
  const std::int64_t added = state.fixed_shapes ? state.row_end_bits.size(1)
                                                : number.select(1, nodes - 1).max().item<std::int64_t>();
  if (added == 0) return pass;

  const at::Tensor own = at::arange(nodes, number.options()).expand({images, nodes});  // [I, N]
  pass.deciding = at::where(last, number + (nodes - 1), own);
  // The node in front of each row end, [I, added]. Slot `added` takes what has no row end.
  const at::Tensor parents = at::zeros({images, added + 1}, number.options())
                                 .scatter_(1, (number - 1).masked_fill(last.logical_not(), added), own)
                                 .narrow(1, 0, added);
  const at::Tensor ids = tree.tokens.clamp_min(0) + state.first_image_id;  // [I, N]
  pass.codes = at::cat({ids, at::full_like(parents, state.row_end)}, 1);
  pass.first_id = 0;
  pass.depths = at::cat({tree.depths.expand({images, nodes}), (end + 1).expand({images, added})}, 1);

  const std::int64_t words = (nodes + added + 63) / 64;                                    // W
  const at::Tensor own_bits = state.row_end_bits.narrow(1, 0, added).narrow(2, 0, words);  // [1, added, W]
  const at::Tensor seen =
      tree.mask.numel() > 0 ? tree.mask : at::ones({1, 1, 1}, number.options());  // a root alone sees itself
  // [I, N, W] and [I, added, W]
  const at::Tensor by_node = at::constant_pad_nd(seen, {0, words - 1}).expand({images, nodes, words});
  const at::Tensor by_end = by_node.gather(1, parents.unsqueeze(2).expand({images, added, words}));
  pass.mask = at::cat({by_node, by_end.bitwise_or(own_bits)}, 1);
  return pass;
}

KeptRows kept_rows(const Judged& judged, const at::Tensor& deciding) {
  if (!deciding.defined()) return {judged.path, judged.count};
  const at::Tensor place = judged.count.unsqueeze(1);  // [I, 1], as what follows: of the last node
  const at::Tensor last = judged.path.gather(1, place);
  const at::Tensor row = deciding.gather(1, last);
  const at::Tensor ended = row.ne(last);
  const at::Tensor after = row.masked_fill(ended.logical_not(), -1);
  return {at::constant_pad_nd(judged.path, {0, 1}, -1).scatter_(1, place + 1, after),
          judged.count + ended.squeeze(1).to(at::kLong)};
}

}  // namespace lamplighter
