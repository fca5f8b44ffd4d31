#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/commit/commit_args.h"

namespace lamplighter {
namespace ops {

// What EAGLE's draft model has not read yet: A rows, `count` of them valid. Sd = its sequences: S, or I where
// it reads the first of each pair.
struct NewTokens {
  at::Tensor count;      // int64 [Sd]
  at::Tensor ids;        // int64 [Sd, A], the vocabulary id after each row
  at::Tensor positions;  // int64 [Sd, A]
  at::Tensor features;   // [Sd, A, F]
};
// Sets the new tokens in place, from a pass with features [S, R, F]; kernels/commit/new_tokens.h. Call it
// before commit_tokens, which advances the counters.
LAMPLIGHTER_EXPORTED void new_tokens(const CommittedTree& tree, const at::Tensor& features,
                                     const Counters& state, NewTokens& fresh);

}  // namespace ops

struct NewTokensArgs;

// Arguments checked and turned into what kernels take.
LAMPLIGHTER_EXPORTED NewTokensArgs new_tokens_args(const ops::CommittedTree& tree, const at::Tensor& features,
                                                   const ops::Counters& state, const ops::NewTokens& fresh);

}  // namespace lamplighter
