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
#include <optional>
#include <utility>
#include <vector>

#include "draft/rows/chains.h"
#include "draft/rows/row_progress.h"
#include "draft/rows/verify_rows.h"

namespace lamplighter {
namespace {

// R = rows that run at a time, as RowProgress numbers them; L = length of a window.
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
    const std::int64_t height = shape.grid->rows, width = shape.grid->columns;
    if (ahead_ == 0) ahead_ = std::max<std::int64_t>(1, width / 2);
    ahead_ = std::min(ahead_, width);
    const std::int64_t rows = std::min((width - 1) / ahead_ + (window_ > 0 ? 2 : 1), height);
    const std::int64_t nodes = rows * (window_ + 1), images = shape.images;
    guided_ = shape.guided;
    shape_ = {nodes + 1, nodes - 1, nodes + 1, 0, height};
    progress_.emplace(RowProgress::Sizes{height, width, ahead_, window_, rows}, images, nodes, device_);
    window_tokens_ = at::full({images, rows, window_}, -1, at::dtype(at::kLong).device(device_));
    window_probs_ = at::zeros({images, rows, window_, vocabulary_}, at::dtype(at::kFloat).device(device_));
  }

  TreeShape shape() const override { return shape_; }
  at::Tensor order() const override { return progress_->order(); }

  Draft draft(const RunState& run) override {
    const at::Tensor& steps = run.counters.steps;
    const RunningRows rows = progress_->running(run);
    const at::Tensor last_tokens = progress_->newest(rows);
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
    const at::Tensor placeholder = progress_->placeholder_position().unsqueeze(1);
    const at::Tensor recompute =
        progress_->codes().gather(1, placeholder.clamp_min(0)).masked_fill(placeholder < 0, -1);
    Draft draft;
    draft.tokens = at::cat({chains.flatten(1), recompute}, 1);
    const at::Tensor positions = at::cat({(part(rows.positions) + depth).flatten(1), placeholder}, 1)
                                     .clamp(0, progress_->sizes().total() - 1);
    draft.nodes.depths = positions - (steps - 1).unsqueeze(1);
    draft.nodes.mask = seen(run, draft, windows, positions);
    draft.lengths = at::stack({run.counters.lengths - per_sequence(steps - 1, guided_),
                               run.counters.lengths + per_sequence(progress_->recomputed(), guided_)});
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
    if (windows == nullptr) {
      window_tokens_.fill_(-1);
      return progress_->begin_with(verified.walk.token);
    }
    renew(draft, *windows, verified, run);
    progress_->record(draft, verified, run);
    if (const auto from = progress_->advance(verified.accepted, run)) shift(*from);
  }

  std::vector<PerImage> per_image() override {
    std::vector<PerImage> all = progress_->per_image();
    all.insert(all.end(), {{&window_tokens_}, {&window_probs_}});
    return all;
  }

 private:
  at::Tensor numbers(std::int64_t count) const {
    return at::arange(count, at::dtype(at::kLong).device(device_));
  }

  // Rows and nodes that some image has a use for, where asking is cheap.
  ParallelWindows windows_of(const RunState& run, const RunningRows& rows) const {
    const std::int64_t most = progress_->sizes().rows;
    ParallelWindows windows{most, window_ + 1, most, window_ + 1, {}, sees_other_drafts_};
    if (!run.fixed_shapes) {
      windows.rows = std::max<std::int64_t>(1, (rows.left > 0).sum(1).max().item<std::int64_t>());
      windows.nodes = std::clamp<std::int64_t>(rows.left.max().item<std::int64_t>(), 1, window_ + 1);
    }
    windows.limits = rows.limits.narrow(1, 0, windows.rows);
    return windows;
  }

  // Guesses where the window has no draft.
  void fill(const RunState& run, const RunningRows& rows, const at::Tensor& last_tokens) {
    if (window_ == 0) return;
    const RowProgress::Sizes& sizes = progress_->sizes();
    const std::int64_t images = run.images();
    const at::Tensor uniforms =
        ops::uniforms(run.seeds, run.counters.steps, ops::Purpose::fill, sizes.rows * window_);
    at::Tensor probs = window_probs_.flatten(0, 1);
    const at::Tensor codes = progress_->codes().clamp_min(0).unsqueeze(1);
    const at::Tensor known = codes.expand({images, sizes.rows, codes.size(2)}).flatten(0, 1);
    const at::Tensor tokens = ops::fill_window(
        window_tokens_.flatten(0, 1), probs,
        {uniforms.view({-1, window_}), (rows.positions + 1).clamp(0, sizes.total()).flatten().contiguous(),
         last_tokens.flatten().contiguous(), known.contiguous(), sizes.width, ids_, options_.fill});
    window_tokens_.copy_(tokens.view_as(window_tokens_));
  }

  // What every node sees of the cache behind the prompt: slots of positions up to its own, its own chain, and
  // of the other chains of this pass the newest codes, or the drafts, too.
  at::Tensor seen(const RunState& run, const Draft& draft, const ParallelWindows& windows,
                  const at::Tensor& positions) {
    const at::Tensor before = progress_->seen_slots(positions);
    const std::int64_t nodes = positions.size(1), stored = before.size(2);
    const at::Tensor together = seen_in_pass(draft.tokens, windows, positions, sees_other_drafts_);
    const std::int64_t columns = (stored + nodes + 63) / 64 * 64;
    const at::Tensor number =
        numbers(columns) -
        (run.counters.steps - 1 + progress_->recomputed()).unsqueeze(1);  // [I, columns], in the pass
    const at::Tensor now =
        ((number >= 0) & (number < nodes)).unsqueeze(1) &
        together.gather(2, number.clamp(0, nodes - 1).unsqueeze(1).expand({-1, nodes, -1}));
    return to_bits(now | at::constant_pad_nd(before, {0, columns - stored}, false));
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

  // from: int64 [I, R], the row that takes the number of each.
  void shift(const at::Tensor& from) {
    const auto padded = at::constant_pad_nd(window_tokens_, {0, 0, 0, 1}, -1);
    window_tokens_.copy_(padded.gather(1, from.unsqueeze(2).expand_as(window_tokens_)));
    const at::Tensor index = from.clamp_max(from.size(1) - 1).unsqueeze(2).unsqueeze(3);
    window_probs_.copy_(window_probs_.gather(1, index.expand_as(window_probs_)));
  }

  std::int64_t ahead_, window_;
  WindowOptions options_;
  bool sees_other_drafts_;
  c10::Device device_;
  std::int64_t vocabulary_, ids_;  // V of the head, and the ids of it that are codes
  bool guided_ = false;
  TreeShape shape_;
  std::optional<RowProgress> progress_;
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
