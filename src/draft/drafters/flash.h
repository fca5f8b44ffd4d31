#pragma once

#include "bundle/modules/draft_model.h"
#include "draft/method.h"

namespace lamplighter {

// Calls the heads and the compression of a FLASH layer (shapes as for EagleLayer).
class FlashLayer {
 public:
  explicit FlashLayer(const DraftModel& network) : network_(network), module_(network.module()) {}

  // hidden [S, 1, H] -> logits [S, K, V] of the next K tokens, `needed` or more.
  at::Tensor heads(const at::Tensor& hidden, std::int64_t needed = 1) const;
  // Compresses the features 1 .. last int64 [S] of [S, N, F] to [S, C, F].
  at::Tensor compress(const at::Tensor& features, const at::Tensor& last) const;
  // As EagleLayer::forward with the compressed features [S, C, F] behind the others: positions [S, R + C] ->
  // [S, R + C, H].
  at::Tensor forward_compressed(const at::Tensor& embeddings, const at::Tensor& features,
                                const at::Tensor& compressed, const at::Tensor& positions,
                                const at::Tensor& tree_mask, const at::Tensor& lengths,
                                const at::Tensor& cache) const;

 private:
  const DraftModel& network_;
  const Module& module_;
};

// One pass of the drafter over the target's features predicts several tokens ahead (FLASH, Wang et al. 2025,
// section 3.3); a head for each gives the candidates of its depth. Positions older than the drafter's window
// may be compressed to a few learned queries (section 3.2). `tree` may be a part of the method's and outlives
// the draft method.
std::unique_ptr<DraftMethod> make_flash_tree(const Method& method, const Models& models, const Tree& tree);
// Drafts the method's own tree.
std::unique_ptr<DraftMethod> make_flash(const Method& method, const Models& models);

}  // namespace lamplighter
