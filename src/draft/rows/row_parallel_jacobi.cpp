#include "draft/rows/row_parallel_jacobi.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "draft/rows/chains.h"
#include "draft/rows/verify_rows.h"

namespace lamplighter {
namespace {

constexpr std::int64_t kNowhere = std::int64_t{1} << 40;  // a position that no query sees

// Values [I, W] of the rows `by` above the open ones: `outside` above the first of them.
at::Tensor above(const at::Tensor& values, std::int64_t by, std::int64_t outside) {
  return at::constant_pad_nd(values, {by, 0}, outside).narrow(1, 0, values.size(1));
}

// Image rows are numbered from the first one that is not complete: R = most of them that run at a time. A row
// below another one is shorter by `ahead` codes or more until that one is complete, so at most one row is
// completed in a pass, the first. T = codes of an image, L = length of a window, C = cache slots behind the
// prompt.
class RowParallelJacobi : public DraftMethod {
 public:
  RowParallelJacobi(const Method& method, const Models& models, bool sees_other_drafts)
      : ahead_(method.options.ahead.value_or(0)),
        window_(method.row_window),
        options_(method.window),
        sees_other_drafts_(sees_other_drafts),
        device_(models.target->placement().device),
        vocabulary_(models.target->manifest().target.head),
        ids_(std::min(vocabulary_, models.target->manifest().tokens.codebook_size)) {}

  void allocate(const RunShape& shape, std::int64_t /*slots*/) override {
    height_ = shape.grid->rows;
    width_ = shape.grid->columns;
    guided_ = shape.guided;
    if (ahead_ == 0) ahead_ = std::max<std::int64_t>(1, width_ / 2);
    ahead_ = std::min(ahead_, width_);
    most_rows_ = std::min((width_ - 1) / ahead_ + (window_ > 0 ? 2 : 1), height_);
    const std::int64_t nodes = most_rows_ * (window_ + 1), total = height_ * width_, images = shape.images;
    shape_ = {nodes + 1, nodes - 1, nodes + 1, 0, height_};
    const auto integers = at::dtype(at::kLong).device(device_);
    first_row_ = at::full({images}, height_, integers);
    row_lengths_ = at::zeros({images, most_rows_}, integers);
    placeholder_position_ = at::full({images}, -1, integers);
    recomputed_ = at::zeros({images}, integers);
    codes_ = at::full({images, total + 1}, -1, integers);
    slot_positions_ = at::full({images, total + height_ + 1}, kNowhere, integers);
    order_ = at::zeros({images, total + nodes + 1}, integers);
    window_tokens_ = at::full({images, most_rows_, window_}, -1, integers);
    window_probs_ =
        at::zeros({images, most_rows_, window_, vocabulary_}, at::dtype(at::kFloat).device(device_));
  }

  TreeShape shape() const override { return shape_; }
  at::Tensor order() const override { return order_; }

  Draft draft(const RunState& run) override {
    const at::Tensor& steps = run.counters.steps;
    const Rows rows = running_rows(run);
    const at::Tensor last_tokens = newest(rows);
    fill(run, rows, last_tokens);
    ParallelWindows windows = windows_of(run, rows);
    const at::Tensor depth = numbers(windows.nodes);
    const auto part = [&](const at::Tensor& of_rows) {
      return of_rows.narrow(1, 0, windows.rows).unsqueeze(2);
    };
    const at::Tensor chains =
        at::cat(
            {part(last_tokens), window_tokens_.narrow(1, 0, windows.rows).narrow(2, 0, windows.nodes - 1)}, 2)
            .masked_fill(depth >= part(rows.left), -1);
    const at::Tensor placeholder = placeholder_position_.unsqueeze(1);
    const at::Tensor recompute = codes_.gather(1, placeholder.clamp_min(0)).masked_fill(placeholder < 0, -1);
    Draft draft;
    draft.tokens = at::cat({chains.flatten(1), recompute}, 1);
    const at::Tensor positions =
        at::cat({(part(rows.positions) + depth).flatten(1), placeholder}, 1).clamp(0, height_ * width_ - 1);
    draft.nodes.depths = positions - (steps - 1).unsqueeze(1);
    draft.nodes.mask = seen(run, draft, windows, positions);
    draft.lengths = at::stack({run.counters.lengths - per_sequence(steps - 1, guided_),
                               run.counters.lengths + per_sequence(recomputed_, guided_)});
    if (windows.nodes > 1)
      draft.distributions = window_probs_.narrow(1, 0, windows.rows)
                                .narrow(2, 0, windows.nodes - 1)
                                .reshape({-1, windows.nodes - 1, vocabulary_})
                                .contiguous();
    draft.kind = std::move(windows);
    return draft;
  }

  Verified verify(const RunState& run, const Draft& draft, const Scores& scores, ops::Distributions target,
                  const ops::VerifyOptions& rule) const override {
    return verify_rows(run, draft, scores, std::move(target), rule);
  }

  void update(const Draft& draft, const Scores& /*scores*/, const Verified& verified,
              const RunState& run) override {
    const auto* windows = std::get_if<ParallelWindows>(&draft.kind);
    if (windows == nullptr) return begin_with(verified.walk.token);
    renew(draft, *windows, verified, run);
    record(draft, verified, run);
    advance(verified, run);
  }

  std::vector<PerImage> per_image() override {
    return {{&first_row_},      {&row_lengths_}, {&placeholder_position_}, {&recomputed_},  {&codes_},
            {&slot_positions_}, {&order_},       {&window_tokens_},        {&window_probs_}};
  }

 private:
  // All [I, R]. A row that runs and is not open yet prepares its window.
  struct Rows {
    at::Tensor left;       // int64, codes that a row still needs; 0: it does not run
    at::Tensor limits;     // int64, drafts that it may accept (ParallelWindows::limits)
    at::Tensor positions;  // int64, of its newest code
  };

  at::Tensor numbers(std::int64_t count) const {
    return at::arange(count, at::dtype(at::kLong).device(device_));
  }

  Rows running_rows(const RunState& run) const {
    const at::Tensor number = numbers(most_rows_);
    const at::Tensor row = first_row_.unsqueeze(1) + number;
    const at::Tensor longer = above(row_lengths_, 1, width_);
    Rows rows;
    const at::Tensor exists = (row < height_) & (run.counters.steps < run.counters.total).unsqueeze(1);
    // No placeholder stands for the end of the first row.
    const at::Tensor may_open = exists & ((number == 0) | (first_row_ > 0).unsqueeze(1));
    const at::Tensor open = may_open & (longer >= ahead_);
    // The next one may open after this pass, or by it.
    const at::Tensor next = exists & (number == open.sum(1, true)) & (longer + window_ + 1 >= ahead_);
    const at::Tensor runs = window_ > 0 ? open | next : open;
    rows.left = (width_ - row_lengths_).masked_fill(runs.logical_not(), 0);
    rows.limits = (longer - ahead_ - row_lengths_)
                      .masked_fill(number == 0, width_)
                      .masked_fill((runs & may_open).logical_not(), -height_ * width_);
    rows.positions = row * width_ + row_lengths_ - 1;
    return rows;
  }

  // The newest code of every row that runs. A row that begins has the end of the row above it or, until that
  // is known, a placeholder: the newest code of the row above that (ZipAR).
  at::Tensor newest(const Rows& rows) const {
    const at::Tensor number = numbers(most_rows_);
    const at::Tensor placeholder =
        (first_row_.unsqueeze(1) + number - 2) * width_ + above(row_lengths_, 2, width_) - 1;
    const auto code = [&](const at::Tensor& at) {
      return codes_.gather(1, at.clamp(0, height_ * width_ - 1));
    };
    const at::Tensor own = code(rows.positions);
    return at::where(own >= 0, own, code(placeholder)).masked_fill(rows.left == 0, 0).clamp_min(0);
  }

  // Rows and nodes that some image has a use for, where asking is cheap.
  ParallelWindows windows_of(const RunState& run, const Rows& rows) const {
    ParallelWindows windows{most_rows_, window_ + 1, most_rows_, window_ + 1, {}, sees_other_drafts_};
    if (!run.fixed_shapes) {
      windows.rows = std::max<std::int64_t>(1, (rows.left > 0).sum(1).max().item<std::int64_t>());
      windows.nodes = std::clamp<std::int64_t>(rows.left.max().item<std::int64_t>(), 1, window_ + 1);
    }
    windows.limits = rows.limits.narrow(1, 0, windows.rows);
    return windows;
  }

  // Guesses where the window has no draft.
  void fill(const RunState& run, const Rows& rows, const at::Tensor& last_tokens) {
    if (window_ == 0) return;
    const std::int64_t images = run.images();
    const at::Tensor uniforms =
        ops::uniforms(run.seeds, run.counters.steps, ops::Purpose::fill, most_rows_ * window_);
    at::Tensor probs = window_probs_.flatten(0, 1);
    const at::Tensor known =
        codes_.clamp_min(0).unsqueeze(1).expand({images, most_rows_, codes_.size(1)}).flatten(0, 1);
    const at::Tensor tokens = ops::fill_window(
        window_tokens_.flatten(0, 1), probs,
        {uniforms.view({-1, window_}), (rows.positions + 1).clamp(0, height_ * width_).flatten().contiguous(),
         last_tokens.flatten().contiguous(), known.contiguous(), width_, ids_, options_.fill});
    window_tokens_.copy_(tokens.view_as(window_tokens_));
  }

  // What every node sees of the cache behind the prompt: slots of positions up to its own, its own chain, and
  // of the other chains of this pass the newest codes, or the drafts, too.
  at::Tensor seen(const RunState& run, const Draft& draft, const ParallelWindows& windows,
                  const at::Tensor& positions) {
    // The slot of a placeholder.
    slot_positions_.masked_fill_(slot_positions_ == placeholder_position_.unsqueeze(1), kNowhere);
    const std::int64_t nodes = positions.size(1), stored = slot_positions_.size(1);
    const at::Tensor together = seen_in_pass(draft.tokens, windows, positions, sees_other_drafts_);
    const std::int64_t columns = (stored + nodes + 63) / 64 * 64;
    const at::Tensor number =
        numbers(columns) - (run.counters.steps - 1 + recomputed_).unsqueeze(1);  // [I, columns], in the pass
    const at::Tensor now =
        ((number >= 0) & (number < nodes)).unsqueeze(1) &
        together.gather(2, number.clamp(0, nodes - 1).unsqueeze(1).expand({-1, nodes, -1}));
    const at::Tensor before = slot_positions_.unsqueeze(1) <= positions.unsqueeze(2);
    return to_bits(now | at::constant_pad_nd(before, {0, columns - stored}, false));
  }

  void begin_with(const at::Tensor& code) {
    for (at::Tensor* zero : {&first_row_, &row_lengths_, &recomputed_, &order_}) zero->zero_();
    for (at::Tensor* none : {&placeholder_position_, &codes_, &window_tokens_}) none->fill_(-1);
    slot_positions_.fill_(kNowhere);
    row_lengths_.select(1, 0).fill_(1);
    codes_.select(1, 0).copy_(code);
  }

  // The windows behind what was accepted. Drafts behind the end of a row did not run and are forgotten.
  void renew(const Draft& draft, const ParallelWindows& windows, const Verified& verified,
             const RunState& run) {
    const std::int64_t rows = windows.rows, nodes = windows.nodes;
    window_tokens_.fill_(-1);
    if (nodes == 1) return;
    const at::Tensor& count = verified.accepted;
    auto [tokens, probs] =
        ops::renew_window(chains_of(run, draft, windows, verified.target.values, ops::Purpose::window, 2),
                          count.flatten().contiguous(), options_.keep);
    const at::Tensor drafts = draft.tokens.narrow(1, 0, rows * nodes).view({-1, rows, nodes});
    const at::Tensor node = count.unsqueeze(2) + 1 + numbers(nodes - 1);  // before the shift
    const at::Tensor scored = (node < nodes) & (drafts.gather(2, node.clamp_max(nodes - 1)) >= 0);
    const auto part = [&](const at::Tensor& all) { return all.narrow(1, 0, rows).narrow(2, 0, nodes - 1); };
    part(window_tokens_).copy_(at::where(scored, tokens.view_as(node), -1));
    part(window_probs_).copy_(probs.view({-1, rows, nodes - 1, vocabulary_}));
  }

  // Records codes by their positions, the order they are committed in, and the positions of new cache slots.
  void record(const Draft& draft, const Verified& verified, const RunState& run) {
    const at::Tensor &steps = run.counters.steps, &kept = verified.kept.rows;
    const at::Tensor position = draft.nodes.depths + (steps - 1).unsqueeze(1);
    const at::Tensor node = at::where(kept >= 0, kept, 0);
    const at::Tensor begin = (steps - 1 + recomputed_).unsqueeze(1);
    const auto put = [](at::Tensor& all, const at::Tensor& at, const at::Tensor& values,
                        const at::Tensor& valid) {
      const std::int64_t spare = all.size(1) - 1;  // takes what is not valid
      all.scatter_(1, at::where(valid, at, spare), values);
    };
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

  void advance(const Verified& verified, const RunState& run) {
    row_lengths_.narrow(1, 0, verified.accepted.size(1)).add_(verified.accepted + 1);
    const at::Tensor ends = row_lengths_.select(1, 0) == width_;
    const at::Tensor next_began = above(row_lengths_.flip(1), 1, 0).flip(1).select(1, 0) > 0;
    placeholder_position_.copy_(at::where(ends & next_began, first_row_ * width_ + (width_ - 1), -1));
    if (!run.fixed_shapes && !ends.any().item<bool>()) return;
    first_row_.add_(ends);
    // int64 [I, R], the row that takes the number of each.
    const at::Tensor from = numbers(most_rows_) + ends.to(at::kLong).unsqueeze(1);
    const auto padded = [&](const at::Tensor& all, std::int64_t outside) {
      return at::constant_pad_nd(all, {0, 0, 0, 1}, outside);
    };
    row_lengths_.copy_(at::constant_pad_nd(row_lengths_, {0, 1}, 0).gather(1, from));
    window_tokens_.copy_(padded(window_tokens_, -1).gather(1, from.unsqueeze(2).expand_as(window_tokens_)));
    const at::Tensor index = from.clamp_max(most_rows_ - 1).view({-1, most_rows_, 1, 1});
    window_probs_.copy_(window_probs_.gather(1, index.expand_as(window_probs_)));
  }

  std::int64_t ahead_, window_;
  WindowOptions options_;
  bool sees_other_drafts_;
  c10::Device device_;
  std::int64_t vocabulary_, ids_;  // V of the head, and the ids of it that are codes
  std::int64_t height_ = 0, width_ = 0, most_rows_ = 0;
  bool guided_ = false;
  TreeShape shape_;
  at::Tensor first_row_;    // int64 [I]: the first row that is not complete
  at::Tensor row_lengths_;  // int64 [I, R]: codes of the rows from there on
  // int64 [I]: a row's end that ran as a placeholder and is now known; -1: none.
  at::Tensor placeholder_position_;
  at::Tensor recomputed_;      // int64 [I]: tokens that were recomputed
  at::Tensor codes_;           // int64 [I, T + 1]: by position; -1: unknown
  at::Tensor slot_positions_;  // int64 [I, C + 1]: the positions that the cache slots hold
  at::Tensor order_;           // int64 [I, > T]: the positions of the codes as they were committed
  // The windows: codes int64 [I, R, L], -1: no draft, and what they were sampled from, fp32 [I, R, L, V].
  at::Tensor window_tokens_, window_probs_;
};

}  // namespace

std::unique_ptr<DraftMethod> make_zipar_sjd(const Method& method, const Models& models) {
  return std::make_unique<RowParallelJacobi>(method, models, false);
}

std::unique_ptr<DraftMethod> make_pjd(const Method& method, const Models& models) {
  return std::make_unique<RowParallelJacobi>(method, models, true);
}

}  // namespace lamplighter
