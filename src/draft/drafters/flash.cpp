#include "draft/drafters/flash.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <utility>
#include <vector>

#include "draft/drafters/candidates.h"
#include "draft/drafters/eagle.h"

namespace lamplighter {
namespace {

class Flash : public Eagle {
 public:
  Flash(const Method& method, const Models& models, const Tree& tree)
      : Eagle(method, models),
        flash_(*models.drafter),
        verified_(shape_of(*method.tree)),
        candidates_(method, tree, models.target->placement().device) {}

  TreeShape shape() const override { return verified_; }

 protected:
  const FlashLayer flash_;

  std::int64_t grown_rows() const override { return 0; }

  Draft grow(const RunState& run, at::Tensor hidden) override {
    return candidates_.draft(run, flash_.heads(hidden, candidates_.depth()));
  }

 private:
  TreeShape verified_;
  Candidates candidates_;
};

// Keeps the features of the whole image. A pass runs the new tokens and behind them, for this pass alone, the
// queries to which positions older than the window are compressed. With one layer only the mask of the last
// token matters.
class CompressedFlash : public Flash {
 public:
  CompressedFlash(const Method& method, const Models& models, const Tree& tree)
      : Flash(method, models, tree),
        queries_(models.drafter->entry().queries),
        window_(models.drafter->entry().window) {}

  void allocate(const RunShape& shape, std::int64_t rows) override {
    Flash::allocate(shape, rows);
    first_ = at::zeros_like(lengths);
    const std::int64_t new_tokens = fresh.ids.size(1);
    history_ =
        at::zeros({lengths.size(0), rows + new_tokens, fresh.features.size(2)}, fresh.features.options());
    columns_ = (rows + new_tokens + queries_ + 63) / 64 * 64;
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

  at::Tensor run_new_tokens(const NewTokensPart& part) override {
    const std::int64_t rows = part.ids.size(1);
    const at::Tensor offsets = at::arange(rows, lengths.options());
    const at::Tensor before =
        lengths - first_;  // positions of the image before the new tokens, the prompt's last one included
    history_.scatter_(1, (before.unsqueeze(1) + offsets).unsqueeze(2).expand_as(part.features),
                      part.features);
    const at::Tensor last = (fresh.count - 1).clamp_min(0);
    const at::Tensor old = before + last - window_;  // newest compressed position, if it is one of the image
    const at::Tensor compressed = flash_.compress(history_, old.clamp_min(0));
    const at::Tensor newest = part.positions.gather(1, last.unsqueeze(1));
    const at::Tensor query_positions =
        (newest - window_ + 1 - queries_ + at::arange(queries_, lengths.options())).clamp_min(0);
    return flash_
        .forward_compressed(layer_->embed(part.ids), part.features, compressed,
                            at::cat({part.positions, query_positions}, 1), visible(before, last, old, rows),
                            at::stack({first_, lengths}), cache)
        .narrow(1, 0, rows)
        .contiguous();
  }

 private:
  // int64 [Sd, A + C, words] for all entries of a pass: the columns, from the prompt's last position on, to
  // which its last new token attends.
  at::Tensor visible(const at::Tensor& before, const at::Tensor& last, const at::Tensor& old,
                     std::int64_t rows) const {
    const at::Tensor column = at::arange(columns_, lengths.options()).unsqueeze(0);
    const auto of = [](const at::Tensor& per_sequence) { return per_sequence.unsqueeze(1); };
    const at::Tensor newest =
        column.le(of(before + last)).logical_and_(column.gt(of(old)).logical_or_(column.eq(0)));
    const at::Tensor behind = column - of(before) - rows;
    const at::Tensor there = behind.ge(0).logical_and_(behind.lt(queries_)).logical_and_(of(old).ge(1));
    const at::Tensor own = at::arange(rows + queries_, lengths.options()) + of(before);
    const at::Tensor itself = column.unsqueeze(1).eq(own.unsqueeze(2));
    return to_bits(newest.logical_or(there).unsqueeze(1).logical_or(itself));
  }

  std::int64_t queries_, window_;
  at::Tensor first_;    // int64 [Sd], length of the prompt without its last position
  at::Tensor history_;  // [Sd, rows, F]: the target's features, from the prompt's last position on
  std::int64_t columns_ = 0;
};

}  // namespace

at::Tensor FlashLayer::heads(const at::Tensor& hidden, std::int64_t needed) const {
  at::Tensor logits = module_("heads", {hidden});
  network_.require_heads(logits.size(1), needed);
  return network_.all_logits(logits);
}

at::Tensor FlashLayer::compress(const at::Tensor& features, const at::Tensor& last) const {
  return module_("compress", {features, last});
}

at::Tensor FlashLayer::forward_compressed(const at::Tensor& embeddings, const at::Tensor& features,
                                          const at::Tensor& compressed, const at::Tensor& positions,
                                          const at::Tensor& tree_mask, const at::Tensor& lengths,
                                          const at::Tensor& cache) const {
  return module_("forward_compressed",
                 {embeddings, features, compressed, positions, tree_mask, lengths, cache});
}

std::unique_ptr<DraftMethod> make_flash_tree(const Method& method, const Models& models, const Tree& tree) {
  if (models.drafter->entry().queries > 0) return std::make_unique<CompressedFlash>(method, models, tree);
  return std::make_unique<Flash>(method, models, tree);
}

std::unique_ptr<DraftMethod> make_flash(const Method& method, const Models& models) {
  return make_flash_tree(method, models, *method.tree);
}

}  // namespace lamplighter
