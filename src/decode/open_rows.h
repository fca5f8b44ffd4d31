#pragma once

#include "decode/state.h"

// Drafts whose nodes are the newest codes of rows that are drawn side by side: nothing is judged, and what
// follows every node is drawn from the target.
namespace lamplighter {

// What follows the open rows of a draft, target [I, N, V], committed as a chain in their order.
Judged draw_open_rows(const RunState& run, const Draft& draft, ops::Distributions target);

// Depths int64 [1, N] of a chain of tokens [I, N].
at::Tensor chain_depths(const at::Tensor& tokens);

}  // namespace lamplighter
