#pragma once

#include <memory>

#include "bundle/modules/draft_model.h"
#include "draft/models.h"

namespace lamplighter {

// Calls an EAGLE-style layer, which predicts the target's next features (Li et al. 2024, section 3). S =
// sequences, R = tokens of a call per sequence, E = embedding width, F = width of the features that it reads,
// H = width of its hidden states, V = ids of the head. All state lives in tensors of the caller.
class EagleLayer {
 public:
  explicit EagleLayer(const DraftModel& network) : network_(network) {}
  virtual ~EagleLayer() = default;

  // F in a bundle.
  virtual std::int64_t feature_width(const Manifest& manifest) const;
  // ids int64 [S, R] -> [S, R, E].
  at::Tensor embed(const at::Tensor& ids) const;
  // Entry r has the features of a token and the embedding of the token after it: embeddings [S, R, E],
  // features [S, R, F], positions int64 [S, R] of the features, tree_mask and lengths as for the operator
  // `attend`. Returns [S, R, H], the predicted features of the second token.
  virtual at::Tensor forward(const at::Tensor& embeddings, const at::Tensor& features,
                             const at::Tensor& positions, const at::Tensor& tree_mask,
                             const at::Tensor& lengths, const at::Tensor& cache) const;
  // hidden [S, R, H] -> [S, R, V].
  at::Tensor logits(const at::Tensor& hidden) const;

  // Runs the prompts without their last tokens, after their padding if the layer reads that. Returns the
  // committed positions int64 [S]. `conditional`: drafts guided pairs from their conditional half alone.
  virtual at::Tensor read_prompts(const Prompts& prompts, const Prefilled& prefilled, bool conditional,
                                  const at::Tensor& cache) const;

 protected:
  const DraftModel& network_;
};

// Calls a whole small target (Leviathan et al. 2023, section 2.1) by the same interface. It reads no
// features; entry r is the second token at the next position.
class SmallTarget : public EagleLayer {
 public:
  using EagleLayer::EagleLayer;

  std::int64_t feature_width(const Manifest& /*manifest*/) const override { return 0; }
  at::Tensor forward(const at::Tensor& embeddings, const at::Tensor& features, const at::Tensor& positions,
                     const at::Tensor& tree_mask, const at::Tensor& lengths,
                     const at::Tensor& cache) const override;
  // Runs the whole prompts.
  at::Tensor read_prompts(const Prompts& prompts, const Prefilled& prefilled, bool conditional,
                          const at::Tensor& cache) const override;

  // As Target::embed_condition and embed_unconditional.
  at::Tensor embed_condition(const at::Tensor& features, const at::Tensor& mask) const;
  at::Tensor embed_unconditional(const at::Tensor& mask) const;
  // Runs the first positions of all sequences: embeddings [S, R, E] at positions int64 [S, R].
  void run_prompt(const at::Tensor& embeddings, const at::Tensor& positions, const at::Tensor& cache) const;
};

// Whether a network is a whole target.
bool is_small_target(const DraftModel& network);
// The typed caller of a network.
std::unique_ptr<EagleLayer> make_layer(const DraftModel& network);

// With `conditional` the conditional sequences of guided pairs, otherwise all.
at::Tensor conditional_half(const at::Tensor& per_sequence, bool conditional);

}  // namespace lamplighter
