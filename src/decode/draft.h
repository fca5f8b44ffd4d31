#pragma once

#include "decode/decode.h"

// The drafter's side of a cycle.
namespace lamplighter {

// Rows that drafting a tree writes behind the committed ones of the drafter's cache.
std::int64_t draft_rows(const Method& method);

// Runs the drafter over all prompt rows but the last of each sequence, after their padding if it reads that.
// features [S, T, F], positions int64 [S, T].
void prefill_drafter(const Drafter& drafter, const Method& method, const Prompts& prompts,
                     const at::Tensor& features, const at::Tensor& positions, DecodeState& state);

// EAGLE-2's tree below the row `hidden` [Sd, 1, F] (Li et al. 2024, section 4): the drafter's most probable
// paths.
Draft grow_dynamic(const Models& models, const Method& method, DecodeState& state, at::Tensor hidden);

// Parts that static and dynamic trees share. Sd = sequences of the drafter.
// The drafter's sequences of what the target has per sequence.
at::Tensor drafted_half(const at::Tensor& per_sequence, const Method& method, const DecodeState& state);

// Nodes of a tree that the drafter is to run side by side.
struct DraftRows {
  at::Tensor codes;          // int64 [I, W]
  at::Tensor features;       // [Sd, W, F], of their parents
  at::Tensor parent_depths;  // int64 [1, 1]
  at::Tensor mask;           // as for `attend`
};
// Their hidden rows [Sd, W, F]. position int64 [Sd], of the root; lengths int64 [2, Sd] as for `attend`.
at::Tensor run_level(const Models& models, DecodeState& state, const DraftRows& rows,
                     const at::Tensor& position, const at::Tensor& lengths);

}  // namespace lamplighter
