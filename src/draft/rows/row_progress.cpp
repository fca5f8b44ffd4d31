#include "draft/rows/row_progress.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace lamplighter {
namespace {

constexpr std::int64_t kNowhere = std::int64_t{1} << 40;  // a position that no query sees

// Values [I, W] of the rows `by` above the open ones: `outside` above the first of them.
at::Tensor above(const at::Tensor& values, std::int64_t by, std::int64_t outside) {
  return at::constant_pad_nd(values, {by, 0}, outside).narrow(1, 0, values.size(1));
}

// Scatters values into columns `at` where they are valid. The last column takes the others.
void put(at::Tensor& all, const at::Tensor& at, const at::Tensor& values, const at::Tensor& valid) {
  all.scatter_(1, at::where(valid, at, all.size(1) - 1), values);
}

}  // namespace

RowProgress::RowProgress(const Sizes& sizes, std::int64_t images, std::int64_t nodes,
                         const c10::Device& device)
    : sizes_(sizes) {
  const auto integers = at::dtype(at::kLong).device(device);
  const std::int64_t total = sizes.total();
  first_row_ = at::full({images}, sizes.height, integers);
  row_lengths_ = at::zeros({images, sizes.rows}, integers);
  placeholder_position_ = at::full({images}, -1, integers);
  recomputed_ = at::zeros({images}, integers);
  codes_ = at::full({images, total + 1}, -1, integers);
  slot_positions_ = at::full({images, total + sizes.height + 1}, kNowhere, integers);
  order_ = at::zeros({images, total + nodes + 1}, integers);
}

at::Tensor RowProgress::numbers(std::int64_t count) const {
  return at::arange(count, first_row_.options());
}

RunningRows RowProgress::running(const RunState& run) const {
  const auto& [height, width, ahead, window, most] = sizes_;
  const at::Tensor number = numbers(most);
  const at::Tensor row = first_row_.unsqueeze(1) + number;
  const at::Tensor longer = above(row_lengths_, 1, width);
  const at::Tensor exists = (row < height) & (run.counters.steps < run.counters.total).unsqueeze(1);
  // No placeholder stands for the end of the first row.
  const at::Tensor may_open = exists & ((number == 0) | (first_row_ > 0).unsqueeze(1));
  const at::Tensor open = may_open & (longer >= ahead);
  // The next one may open after this pass, or by it.
  const at::Tensor next = exists & (number == open.sum(1, true)) & (longer + window + 1 >= ahead);
  const at::Tensor runs = window > 0 ? open | next : open;
  RunningRows rows;
  rows.left = (width - row_lengths_).masked_fill(runs.logical_not(), 0);
  rows.limits = (longer - ahead - row_lengths_)
                    .masked_fill(number == 0, width)
                    .masked_fill((runs & may_open).logical_not(), -sizes_.total());
  rows.positions = row * width + row_lengths_ - 1;
  return rows;
}

at::Tensor RowProgress::newest(const RunningRows& rows) const {
  const std::int64_t width = sizes_.width;
  const at::Tensor row = first_row_.unsqueeze(1) + numbers(sizes_.rows);
  const at::Tensor placeholder = (row - 2) * width + above(row_lengths_, 2, width) - 1;
  const auto code = [&](const at::Tensor& at) { return codes_.gather(1, at.clamp(0, sizes_.total() - 1)); };
  const at::Tensor own = code(rows.positions);
  return at::where(own >= 0, own, code(placeholder)).masked_fill(rows.left == 0, 0).clamp_min(0);
}

at::Tensor RowProgress::seen_slots(const at::Tensor& positions) {
  // The slot of a placeholder.
  slot_positions_.masked_fill_(slot_positions_ == placeholder_position_.unsqueeze(1), kNowhere);
  return slot_positions_.unsqueeze(1) <= positions.unsqueeze(2);
}

void RowProgress::begin_with(const at::Tensor& code) {
  for (at::Tensor* zero : {&first_row_, &row_lengths_, &recomputed_, &order_}) zero->zero_();
  for (at::Tensor* none : {&placeholder_position_, &codes_}) none->fill_(-1);
  slot_positions_.fill_(kNowhere);
  row_lengths_.select(1, 0).fill_(1);
  codes_.select(1, 0).copy_(code);
}

void RowProgress::record(const Draft& draft, const Verified& verified, const RunState& run) {
  const at::Tensor &steps = run.counters.steps, &kept = verified.kept.rows;
  const at::Tensor position = draft.nodes.depths + (steps - 1).unsqueeze(1);
  const at::Tensor node = at::where(kept >= 0, kept, 0);
  const at::Tensor begin = (steps - 1 + recomputed_).unsqueeze(1);
  put(slot_positions_, begin + numbers(node.size(1)), position.gather(1, node), kept >= 0);
  slot_positions_.select(1, slot_positions_.size(1) - 1).fill_(kNowhere);
  // All kept nodes but a recomputed one have a code behind them.
  const at::Tensor number = numbers(verified.tokens.size(1));
  const at::Tensor count = verified.walk.count.unsqueeze(1);
  const at::Tensor next = at::constant_pad_nd(verified.tokens.slice(1, 1), {0, 1}, -1);
  const at::Tensor code = at::where(number == count, verified.walk.token.unsqueeze(1), next);
  const at::Tensor behind = position.gather(1, node.narrow(1, 0, number.size(0))) + 1;
  put(codes_, behind, code, number <= count);
  codes_.select(1, codes_.size(1) - 1).fill_(-1);
  put(order_, steps.unsqueeze(1) + number, behind, number <= count);
  recomputed_.add_(verified.kept.count - verified.walk.count);
}

std::optional<at::Tensor> RowProgress::advance(const at::Tensor& accepted, const RunState& run) {
  const std::int64_t width = sizes_.width;
  row_lengths_.narrow(1, 0, accepted.size(1)).add_(accepted + 1);
  const at::Tensor ends = row_lengths_.select(1, 0) == width;
  const at::Tensor next_began = above(row_lengths_.flip(1), 1, 0).flip(1).select(1, 0) > 0;
  placeholder_position_.copy_(at::where(ends & next_began, first_row_ * width + (width - 1), -1));
  if (!run.fixed_shapes && !ends.any().item<bool>()) return std::nullopt;
  first_row_.add_(ends);
  const at::Tensor from = numbers(sizes_.rows) + ends.to(at::kLong).unsqueeze(1);
  row_lengths_.copy_(at::constant_pad_nd(row_lengths_, {0, 1}, 0).gather(1, from));
  return from;
}

std::vector<PerImage> RowProgress::per_image() {
  return {{&first_row_},      {&row_lengths_}, {&placeholder_position_}, {&recomputed_}, {&codes_},
          {&slot_positions_}, {&order_}};
}

}  // namespace lamplighter
