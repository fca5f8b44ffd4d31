#include "propose/windows/open_windows.h"

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

#include "propose/windows/chains.h"

namespace lamplighter {
namespace {

constexpr std::int64_t kNowhere = std::int64_t{1} << 40;  // a place that is seen from none

// Values [I, W] of the rows `by` above the open ones: `outside` above the first of them.
at::Tensor above(const at::Tensor& values, std::int64_t by, std::int64_t outside) {
  return at::constant_pad_nd(values, {by, 0}, outside).narrow(1, 0, values.size(1));
}

// Open rows are numbered from the first row that is not complete: R = most of them at a time. A row below
// another one is shorter by `ahead` codes or more until that one is complete, so at most one row is completed
// in a pass, the first. T = codes of a picture, L = slots of a window, C = columns of the cache behind the
// prompt.
class Windows : public Proposer {
 public:
  Windows(const Method& method, const Models& models, bool across)
      : ahead_(method.rows.ahead),
        slots_(method.rows.slots),
        window_(method.window),
        across_(across),
        device_(models.target->placement().device),
        vocabulary_(models.target->manifest().target.head),
        ids_(std::min(vocabulary_, models.target->manifest().tokens.codebook_size)) {}

  void allocate(const RunShape& shape, std::int64_t /*rows*/) override {
    height_ = shape.grid->rows;
    width_ = shape.grid->columns;
    guided_ = shape.guided;
    if (ahead_ == 0) ahead_ = std::max<std::int64_t>(1, width_ / 2);
    ahead_ = std::min(ahead_, width_);
    most_ = std::min((width_ - 1) / ahead_ + (slots_ > 0 ? 2 : 1), height_);
    const std::int64_t chains = most_ * (slots_ + 1), total = height_ * width_, images = shape.images;
    shape_ = {chains + 1, chains - 1, chains + 1, 0, height_};
    const auto integers = at::dtype(at::kLong).device(device_);
    first_ = at::full({images}, height_, integers);
    lengths_ = at::zeros({images, most_}, integers);
    ended_ = at::full({images}, -1, integers);
    again_ = at::zeros({images}, integers);
    codes_ = at::full({images, total + 1}, -1, integers);
    columns_ = at::full({images, total + height_ + 1}, kNowhere, integers);
    order_ = at::zeros({images, total + chains + 1}, integers);
    tokens_ = at::full({images, most_, slots_}, -1, integers);
    rows_ = at::zeros({images, most_, slots_, vocabulary_}, at::dtype(at::kFloat).device(device_));
  }

  TreeShape shape() const override { return shape_; }
  at::Tensor order() const override { return order_; }

  Draft propose(const RunState& run) override {
    const Rows rows = open_rows(run);
    const at::Tensor roots = newest(rows);
    fill(run, rows, roots);
    const OpenWindows windows = windows_of(run, rows);
    const at::Tensor depth = numbers(windows.nodes);
    const auto part = [&](const at::Tensor& of_rows) {
      return of_rows.narrow(1, 0, windows.rows).unsqueeze(2);
    };
    const at::Tensor drafts =
        at::cat({part(roots), tokens_.narrow(1, 0, windows.rows).narrow(2, 0, windows.nodes - 1)}, 2)
            .masked_fill(depth >= part(rows.left), -1);
    const at::Tensor ended = ended_.unsqueeze(1);
    const at::Tensor once_more = codes_.gather(1, ended.clamp_min(0)).masked_fill(ended < 0, -1);
    Draft draft;
    draft.windows = windows;
    draft.limits = rows.limits.narrow(1, 0, windows.rows);
    draft.above = across_;
    draft.tokens = at::cat({drafts.flatten(1), once_more}, 1);
    const at::Tensor places =
        at::cat({(part(rows.places) + depth).flatten(1), ended}, 1).clamp(0, height_ * width_ - 1);
    draft.depths = places - (run.steps - 1).unsqueeze(1);
    draft.mask = seen(run, draft, places);
    draft.lengths = at::stack(
        {run.lengths - per_sequence(run.steps - 1, guided_), run.lengths + per_sequence(again_, guided_)});
    if (windows.nodes > 1)
      draft.distributions = rows_.narrow(1, 0, windows.rows)
                                .narrow(2, 0, windows.nodes - 1)
                                .reshape({-1, windows.nodes - 1, vocabulary_})
                                .contiguous();
    return draft;
  }

  void learn(const Draft& draft, const Scores& /*scores*/, const Judged& judged, const KeptRows& /*kept*/,
             const RunState& run) override {
    if (draft.windows.rows == 0) return begin_with(judged.token);
    renew(draft, judged, run);
    note(draft, judged, run);
    advance(judged, run);
  }

  std::vector<PerImage> per_image() override {
    return {{&first_},   {&lengths_}, {&ended_},  {&again_}, {&codes_},
            {&columns_}, {&order_},   {&tokens_}, {&rows_}};
  }

 private:
  // All [I, R]. A row that runs and is not open yet prepares its window.
  struct Rows {
    at::Tensor open;    // bool
    at::Tensor left;    // int64, codes that a row lacks; 0: it does not run
    at::Tensor limits;  // int64, drafts that it may accept (Draft::limits)
    at::Tensor places;  // int64, of what stands before its next code
  };

  at::Tensor numbers(std::int64_t count) const {
    return at::arange(count, at::dtype(at::kLong).device(device_));
  }

  Rows open_rows(const RunState& run) const {
    const at::Tensor number = numbers(most_);
    const at::Tensor row = first_.unsqueeze(1) + number;
    const at::Tensor longer = above(lengths_, 1, width_);
    Rows rows;
    const at::Tensor exists = (row < height_) & (run.steps < run.total).unsqueeze(1);
    // The row under the first one takes no stand-in for its end.
    const at::Tensor may_open = exists & ((number == 0) | (first_ > 0).unsqueeze(1));
    rows.open = may_open & (longer >= ahead_);
    // The next one may open after this pass, or by it.
    const at::Tensor next = exists & (number == rows.open.sum(1, true)) & (longer + slots_ + 1 >= ahead_);
    const at::Tensor runs = slots_ > 0 ? rows.open | next : rows.open;
    rows.left = (width_ - lengths_).masked_fill(runs.logical_not(), 0);
    rows.limits = (longer - ahead_ - lengths_)
                      .masked_fill(number == 0, width_)
                      .masked_fill((runs & may_open).logical_not(), -height_ * width_);
    rows.places = row * width_ + lengths_ - 1;
    return rows;
  }

  // The newest code of every open row; of one that begins the end of the row above it or, until that is
  // known, the newest code of the row above that (ZipAR).
  at::Tensor newest(const Rows& rows) const {
    const at::Tensor number = numbers(most_);
    const at::Tensor place = (first_.unsqueeze(1) + number - 2) * width_ + above(lengths_, 2, width_) - 1;
    const auto code = [&](const at::Tensor& at) {
      return codes_.gather(1, at.clamp(0, height_ * width_ - 1));
    };
    const at::Tensor own = code(rows.places);
    return at::where(own >= 0, own, code(place)).masked_fill(rows.left == 0, 0).clamp_min(0);
  }

  // Rows and nodes that some image has a use for, where asking is cheap.
  OpenWindows windows_of(const RunState& run, const Rows& rows) const {
    OpenWindows windows{most_, slots_ + 1, most_, slots_ + 1};
    if (run.fixed_shapes) return windows;
    windows.rows = std::max<std::int64_t>(1, (rows.left > 0).sum(1).max().item<std::int64_t>());
    windows.nodes = std::clamp<std::int64_t>(rows.left.max().item<std::int64_t>(), 1, slots_ + 1);
    return windows;
  }

  // Guesses where no draft stands.
  void fill(const RunState& run, const Rows& rows, const at::Tensor& roots) {
    if (slots_ == 0) return;
    const std::int64_t images = run.images();
    const at::Tensor uniforms = ops::uniforms(run.seeds, run.steps, ops::Purpose::fill, most_ * slots_);
    at::Tensor laws = rows_.flatten(0, 1);
    const at::Tensor drawn =
        codes_.clamp_min(0).unsqueeze(1).expand({images, most_, codes_.size(1)}).flatten(0, 1);
    const at::Tensor tokens = ops::fill_window(
        tokens_.flatten(0, 1), laws,
        {uniforms.view({-1, slots_}), (rows.places + 1).clamp(0, height_ * width_).flatten().contiguous(),
         roots.flatten().contiguous(), drawn.contiguous(), width_, ids_, window_.fill});
    tokens_.copy_(tokens.view_as(tokens_));
  }

  // What every node sees of the cache behind the prompt: what stands at or before its place, its own chain,
  // and of other chains of this pass what is no draft, or all.
  at::Tensor seen(const RunState& run, const Draft& draft, const at::Tensor& places) {
    columns_.masked_fill_(columns_ == ended_.unsqueeze(1), kNowhere);  // that of a stand-in
    const std::int64_t nodes = places.size(1), stored = columns_.size(1);
    const at::Tensor node = numbers(nodes);
    const at::Tensor chain = node.floor_divide(draft.windows.nodes);
    const at::Tensor own =
        (chain.unsqueeze(1) == chain.unsqueeze(0)) & (node.unsqueeze(0) <= node.unsqueeze(1));
    at::Tensor told = draft.tokens >= 0;  // [I, N]
    if (!across_) told = told & (node.remainder(draft.windows.nodes) == 0);
    const at::Tensor others = (chain.unsqueeze(1) != chain.unsqueeze(0)) & told.unsqueeze(1) &
                              (places.unsqueeze(1) <= places.unsqueeze(2));
    const at::Tensor together = own | others;  // [I, N, N]
    const std::int64_t columns = (stored + nodes + 63) / 64 * 64;
    const at::Tensor number =
        numbers(columns) - (run.steps - 1 + again_).unsqueeze(1);  // [I, columns], in the pass
    const at::Tensor now =
        ((number >= 0) & (number < nodes)).unsqueeze(1) &
        together.gather(2, number.clamp(0, nodes - 1).unsqueeze(1).expand({-1, nodes, -1}));
    const at::Tensor before = columns_.unsqueeze(1) <= places.unsqueeze(2);
    return to_bits(now | at::constant_pad_nd(before, {0, columns - stored}, false));
  }

  void begin_with(const at::Tensor& code) {
    for (at::Tensor* zero : {&first_, &lengths_, &again_, &order_}) zero->zero_();
    for (at::Tensor* none : {&ended_, &codes_, &tokens_}) none->fill_(-1);
    columns_.fill_(kNowhere);
    lengths_.select(1, 0).fill_(1);
    codes_.select(1, 0).copy_(code);
  }

  // The windows behind what was accepted. Drafts behind the end of a row were not run and are forgotten.
  void renew(const Draft& draft, const Judged& judged, const RunState& run) {
    const auto& [rows, nodes, most_rows, most_nodes] = draft.windows;
    tokens_.fill_(-1);
    if (nodes == 1) return;
    const at::Tensor& count = judged.accepted;
    auto [tokens, laws] =
        ops::renew_window(chains_of(run, draft, judged.target.values, ops::Purpose::window, 2),
                          count.flatten().contiguous(), window_.keep);
    const at::Tensor drafts = draft.tokens.narrow(1, 0, rows * nodes).view({-1, rows, nodes});
    const at::Tensor node = count.unsqueeze(2) + 1 + numbers(nodes - 1);  // that stood in a slot
    const at::Tensor run_before = (node < nodes) & (drafts.gather(2, node.clamp_max(nodes - 1)) >= 0);
    const auto part = [&](const at::Tensor& all) { return all.narrow(1, 0, rows).narrow(2, 0, nodes - 1); };
    part(tokens_).copy_(at::where(run_before, tokens.view_as(node), -1));
    part(rows_).copy_(laws.view({-1, rows, nodes - 1, vocabulary_}));
  }

  // Codes by their places, the order they are committed in, and what the new columns of the cache hold.
  void note(const Draft& draft, const Judged& judged, const RunState& run) {
    const at::Tensor place = draft.depths + (run.steps - 1).unsqueeze(1);
    const at::Tensor node = at::where(judged.kept.rows >= 0, judged.kept.rows, 0);
    const at::Tensor begin = (run.steps - 1 + again_).unsqueeze(1);
    const auto put = [](at::Tensor& all, const at::Tensor& at, const at::Tensor& values,
                        const at::Tensor& valid) {
      const std::int64_t spare = all.size(1) - 1;  // takes what is not valid
      all.scatter_(1, at::where(valid, at, spare), values);
    };
    put(columns_, begin + numbers(node.size(1)), place.gather(1, node), judged.kept.rows >= 0);
    columns_.select(1, columns_.size(1) - 1).fill_(kNowhere);
    // All kept nodes but one that is run once more have a code behind them.
    const at::Tensor number = numbers(judged.chain.size(1));
    const at::Tensor count = judged.count.unsqueeze(1);
    const at::Tensor next = at::constant_pad_nd(judged.chain.slice(1, 1), {0, 1}, -1);
    const at::Tensor code = at::where(number == count, judged.token.unsqueeze(1), next);
    const at::Tensor behind = place.gather(1, node.narrow(1, 0, number.size(0))) + 1;
    put(codes_, behind, code, number <= count);
    codes_.select(1, codes_.size(1) - 1).fill_(-1);
    put(order_, run.steps.unsqueeze(1) + number, behind, number <= count);
    again_.add_(judged.kept.count - judged.count);
  }

  void advance(const Judged& judged, const RunState& run) {
    lengths_.narrow(1, 0, judged.accepted.size(1)).add_(judged.accepted + 1);
    const at::Tensor ends = lengths_.select(1, 0) == width_;
    const at::Tensor goes_on =
        above(lengths_.flip(1), 1, 0).flip(1).select(1, 0) > 0;  // the row below has begun
    ended_.copy_(at::where(ends & goes_on, first_ * width_ + (width_ - 1), -1));
    if (!run.fixed_shapes && !ends.any().item<bool>()) return;
    first_.add_(ends);
    const at::Tensor from =
        numbers(most_) + ends.to(at::kLong).unsqueeze(1);  // [I, R], the row in whose place one goes
    const auto moved = [&](const at::Tensor& all, std::int64_t outside) {
      return at::constant_pad_nd(all, {0, 0, 0, 1}, outside);
    };
    lengths_.copy_(at::constant_pad_nd(lengths_, {0, 1}, 0).gather(1, from));
    tokens_.copy_(moved(tokens_, -1).gather(1, from.unsqueeze(2).expand_as(tokens_)));
    const at::Tensor index = from.clamp_max(most_ - 1).view({-1, most_, 1, 1});
    rows_.copy_(rows_.gather(1, index.expand_as(rows_)));
  }

  std::int64_t ahead_, slots_;
  WindowOptions window_;
  bool across_;  // drafts see those of other rows
  c10::Device device_;
  std::int64_t vocabulary_, ids_;  // V of the head, and the ids of it that are codes
  std::int64_t height_ = 0, width_ = 0, most_ = 0;
  bool guided_ = false;
  TreeShape shape_;
  at::Tensor first_;    // int64 [I]: the first row that is not complete
  at::Tensor lengths_;  // int64 [I, R]: codes of the rows from there on
  at::Tensor ended_;    // int64 [I]: the place of a row's end that a stand-in was run for; -1: none
  at::Tensor again_;    // int64 [I]: rows that were run once more
  at::Tensor codes_;    // int64 [I, T + 1]: by place; -1: not known
  at::Tensor columns_;  // int64 [I, C + 1]: the places of what the cache holds
  at::Tensor order_;    // int64 [I, > T]: the places of the codes as they were committed
  // The windows: codes int64 [I, R, L], -1: nothing is known, and what they were drawn from, fp32 [I, R, L,
  // V].
  at::Tensor tokens_, rows_;
};

}  // namespace

std::unique_ptr<Proposer> make_zipar_windows(const Method& method, const Models& models) {
  return std::make_unique<Windows>(method, models, false);
}

std::unique_ptr<Proposer> make_row_parallel(const Method& method, const Models& models) {
  return std::make_unique<Windows>(method, models, true);
}

}  // namespace lamplighter
