#include "propose/drafters/flash.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <utility>
#include <vector>

#include "propose/drafters/candidates.h"
#include "propose/drafters/eagle.h"

namespace lamplighter {
namespace {

class Flash : public Eagle {
 public:
  Flash(const Method& method, const Models& models, const Tree& tree)
      : Eagle(method, models),
        judged_(shape_of(*method.tree)),
        candidates_(method, tree, models.target->placement().device) {}

  TreeShape shape() const override { return judged_; }

 protected:
  std::int64_t grown_rows() const override { return 0; }

  Draft grow(const RunState& run, at::Tensor hidden) override {
    return candidates_.draft(run, drafter_.heads(hidden));
  }

 private:
  TreeShape judged_;
  Candidates candidates_;
};

// Keeps the features of the whole picture. A pass runs the fresh rows, and behind them, for this pass alone,
// what the rows beyond the window are compressed to. There is one layer, so only the last row's sight
// matters.
class CompressedFlash : public Flash {
 public:
  CompressedFlash(const Method& method, const Models& models, const Tree& tree)
      : Flash(method, models, tree),
        queries_(models.drafter->entry().queries),
        window_(models.drafter->entry().window) {}

  void allocate(const RunShape& shape, std::int64_t rows) override {
    Flash::allocate(shape, rows);
    first_ = at::zeros_like(lengths);
    const std::int64_t fresh_rows = fresh.ids.size(1);
    history_ =
        at::zeros({lengths.size(0), rows + fresh_rows, fresh.features.size(2)}, fresh.features.options());
    columns_ = (rows + fresh_rows + queries_ + 63) / 64 * 64;
  }

  void begin(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) override {
    Flash::begin(prompts, prefilled, run);
    first_.copy_(lengths);
  }

  std::vector<PerImage> per_image() override {
    std::vector<PerImage> all = Flash::per_image();
    all.push_back({&first_, 0});
    all.push_back({&history_, 0, 1});
    return all;
  }

 protected:
  std::int64_t grown_rows() const override { return shape().depth + 2 + queries_; }

  at::Tensor run_fresh(const FreshPart& part) override {
    const std::int64_t rows = part.ids.size(1);
    const at::Tensor offsets = at::arange(rows, lengths.options());
    const at::Tensor drawn = lengths - first_;  // rows before the fresh ones, the prompt's last one included
    history_.scatter_(1, (drawn.unsqueeze(1) + offsets).unsqueeze(2).expand_as(part.features), part.features);
    const at::Tensor last = (fresh.count - 1).clamp_min(0);
    const at::Tensor old =
        drawn + last - window_;  // newest row that is compressed, if it is one of the picture
    const at::Tensor compressed = drafter_.compress(history_, old.clamp_min(0));
    const at::Tensor newest = part.positions.gather(1, last.unsqueeze(1));
    const at::Tensor places =
        (newest - window_ + 1 - queries_ + at::arange(queries_, lengths.options())).clamp_min(0);
    return drafter_
        .forward_compressed(drafter_.embed(part.ids), part.features, compressed,
                            at::cat({part.positions, places}, 1), sight(drawn, last, old, rows),
                            at::stack({first_, lengths}), cache)
        .narrow(1, 0, rows)
        .contiguous();
  }

 private:
  // int64 [Sd, A + C, words] for all rows of a pass: the columns, from the prompt's last row on, that its
  // last valid fresh row sees.
  at::Tensor sight(const at::Tensor& drawn, const at::Tensor& last, const at::Tensor& old,
                   std::int64_t rows) const {
    const at::Tensor column = at::arange(columns_, lengths.options()).unsqueeze(0);
    const auto of = [](const at::Tensor& per_sequence) { return per_sequence.unsqueeze(1); };
    const at::Tensor newest =
        column.le(of(drawn + last)).logical_and_(column.gt(of(old)).logical_or_(column.eq(0)));
    const at::Tensor behind = column - of(drawn) - rows;
    const at::Tensor there = behind.ge(0).logical_and_(behind.lt(queries_)).logical_and_(of(old).ge(1));
    const at::Tensor own = at::arange(rows + queries_, lengths.options()) + of(drawn);
    const at::Tensor itself = column.unsqueeze(1).eq(own.unsqueeze(2));
    return to_bits(newest.logical_or(there).unsqueeze(1).logical_or(itself));
  }

  std::int64_t queries_, window_;
  at::Tensor first_;    // int64 [Sd], rows of the prompt but the last
  at::Tensor history_;  // [Sd, rows, F]: the target's features, from the prompt's last row on
  std::int64_t columns_ = 0;
};

}  // namespace

std::unique_ptr<Proposer> make_flash_tree(const Method& method, const Models& models, const Tree& tree) {
  if (models.drafter->entry().queries > 0) return std::make_unique<CompressedFlash>(method, models, tree);
  return std::make_unique<Flash>(method, models, tree);
}

std::unique_ptr<Proposer> make_flash(const Method& method, const Models& models) {
  return make_flash_tree(method, models, *method.tree);
}

}  // namespace lamplighter
