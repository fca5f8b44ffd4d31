#pragma once

#include <ATen/core/Tensor.h>

#include "bundle/modules/module.h"

namespace lamplighter {

// An EAGLE-style single layer that predicts the target's next features (Li et al. 2024, section 3), or a
// whole small target (Leviathan et al. 2023, section 2.1), which reads no features, or heads on the target's
// hidden states (Medusa, Cai et al. 2024, section 2.1.1), which have `heads` alone. S = sequences, R = rows,
// E = embedding width, F = the target's feature width, H = that of the hidden rows, F unless it is a model, V
// = ids the head can give. All state lives in tensors of the caller.
class Drafter {
 public:
  // The bundle's drafter of this name. Throws Error(ExitCode::bundle).
  Drafter(const Manifest& manifest, const std::string& name, const Placement& placement);
  Drafter(DrafterEntry entry, Module module);

  // ids int64 [S, R] -> [S, R, E].
  at::Tensor embed(const at::Tensor& ids) const;
  // Row r holds the features of a token and the embedding of the token after it: embeddings [S, R, E],
  // features [S, R, F], positions int64 [S, R] of the features, tree_mask and lengths as for the operator
  // `attend`. Returns [S, R, H]: what the features of the second token would be. A model runs the second
  // token, at the position after; its features [S, R, 0] are not looked at.
  at::Tensor forward(const at::Tensor& embeddings, const at::Tensor& features, const at::Tensor& positions,
                     const at::Tensor& tree_mask, const at::Tensor& lengths, const at::Tensor& cache) const;
  // hidden [S, R, H] -> [S, R, V].
  at::Tensor logits(const at::Tensor& hidden) const;
  // hidden [S, 1, F] of the target, after its final norm -> logits [S, K, V] of the tokens 2 .. K + 1 places
  // on. Of flash: hidden rows that forward gave, instead.
  at::Tensor heads(const at::Tensor& hidden) const;
  // Of MLP speculators (Wertheimer et al. 2024, section 3): states [S, R, I] after tokens int64 [S, R], from
  // those before them, in step 0 hidden rows [S, R, F] of the target; number counts from 0.
  at::Tensor step(const at::Tensor& state, const at::Tensor& ids, std::int64_t number) const;
  // state [S, R, I] after that step -> [S, R, V].
  at::Tensor logits_after(const at::Tensor& state, std::int64_t number) const;
  // Of refiners (models/heads/refine.py): hidden rows [I, L, F] of the target, guided, and the stale tokens
  // that they saw, int64 [I, L], -1: there is no such row -> [I, L, 2 K].
  at::Tensor read(const at::Tensor& hidden, const at::Tensor& stale) const;
  // One slot of that [I, 1, 2 K], the state [I, 1, K] of the slot before, at first zeros, and the code int64
  // [I, 1] that stands there now -> [I, 1, K], whose `logits` are added to those of the row.
  at::Tensor refine(const at::Tensor& read, const at::Tensor& state, const at::Tensor& tokens) const;

  // Of flash with queries: features [S, N, F] of the target -> [S, C, F], rows 1 .. last int64 [S] of them
  // compressed (FLASH, Wang et al. 2025, section 3.2).
  at::Tensor compress(const at::Tensor& features, const at::Tensor& last) const;
  // As forward, with compressed rows [S, C, F] behind the others: positions [S, R + C] -> [S, R + C, H].
  at::Tensor forward_compressed(const at::Tensor& embeddings, const at::Tensor& features,
                                const at::Tensor& compressed, const at::Tensor& positions,
                                const at::Tensor& tree_mask, const at::Tensor& lengths,
                                const at::Tensor& cache) const;

  // Of models alone, as for the target (Target::embed_condition).
  at::Tensor embed_condition(const at::Tensor& features, const at::Tensor& mask) const;
  at::Tensor embed_unconditional(const at::Tensor& mask) const;
  // Runs the first rows of all sequences, a prompt: rows [S, R, E] at positions int64 [S, R].
  void read_prompt(const at::Tensor& rows, const at::Tensor& positions, const at::Tensor& cache) const;

  at::Tensor make_cache(std::int64_t sequences, std::int64_t slots) const;

  const DrafterEntry& entry() const { return entry_; }

 private:
  DrafterEntry entry_;
  Module module_;
};

}  // namespace lamplighter
