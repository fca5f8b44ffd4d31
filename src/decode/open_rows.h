#pragma once

#include "decode/state.h"

// Drafts of rows that are drawn side by side. Their nodes are the newest codes of these rows: nothing is
// judged, and what follows every node is drawn from the target. Or every row has a window of drafts behind
// its newest code, a chain of its own.
namespace lamplighter {

// What follows the open rows of a draft, target [I, N, V], committed as a chain in their order.
Judged draw_open_rows(const RunState& run, const Draft& draft, ops::Distributions target);

// The chains of a draft of windows judged by the rule, target [I, N, V]; what they give is committed as one
// chain, row by row.
Judged judge_windows(const RunState& run, const Draft& draft, const ops::Distributions& target,
                     const ops::JudgeOptions& rule);

// Depths int64 [1, N] of a chain of tokens [I, N].
at::Tensor chain_depths(const at::Tensor& tokens);

}  // namespace lamplighter
