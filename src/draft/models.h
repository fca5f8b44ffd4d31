#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "bundle/modules/draft_model.h"
#include "bundle/modules/target.h"

// The models of a run and what they read of its prompts. S = sequences, T = longest prompt.
namespace lamplighter {

struct Models {
  const Target* target = nullptr;
  const DraftModel* drafter = nullptr;  // null: the method needs none

  // A pass of the target that also gives the features which the drafter reads.
  Target::Output run(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& tree_mask,
                     const at::Tensor& lengths, const at::Tensor& cache) const;
};

// Embedded prompts, valid rows first.
struct Prompts {
  at::Tensor rows;   // [S, T, H]
  at::Tensor valid;  // int64 [S] on the CPU: prompt length of each sequence, 1 .. T
  at::Tensor ids;    // int64 [S, T] where prompts are tokens; else undefined
  // [S, T, E]: prompts embedded by a draft model that embeds conditions itself; else undefined.
  at::Tensor drafter_rows = {};
  // For drafters that read the padding in front of captions: the rows after the valid ones are its rows 0, 1,
  // .. and T is the bundle's prompt length, and the most kept tokens more. The target runs them behind the
  // prompt and what is kept, where a row sees all of that and the padding before it, as in the official
  // program; the target's own rows do not see them.
  bool padded = false;
  // int64 [S, T] where images begin with kept tokens: the ids of these, the last valid rows, and -1 in front
  // and behind; else undefined.
  at::Tensor kept_ids = {};

  std::int64_t longest() const { return padded ? rows.size(1) : valid.max().item<std::int64_t>(); }
};

// What the target's pass over the prompts gave.
struct Prefilled {
  at::Tensor features;   // [S, T, F], what drafters read
  at::Tensor positions;  // int64 [S, T], of the rows
};

}  // namespace lamplighter
