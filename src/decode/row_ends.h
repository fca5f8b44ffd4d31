#pragma once

#include "decode/decode.h"

// Grids whose rows end with a forced token. It is never drafted, judged or drawn: trees stop at the last code
// of a row, and the target pass that sees a tree also sees the row end behind every node there. What comes
// after such a node is decided by the row end's logits, so a forced token costs no pass of its own.
namespace lamplighter {

// The most rows that row ends can add to a target pass.
std::int64_t most_row_ends(const Method& method);
// The bits int64 [1, E, W] by which the E = most_row_ends rows behind N nodes see themselves, W words of 64.
at::Tensor own_bits(std::int64_t nodes, std::int64_t row_ends, const c10::Device& device);

// Drops the nodes of a tree below the end of a row: their tokens become -1.
void stop_at_row_ends(const DecodeState& state, Draft& tree);

// The rows of a target pass over a tree.
struct PassRows {
  std::int64_t first_id = 0;
  at::Tensor codes;   // int64 [I, R]: vocabulary ids less first_id; < 0: padding
  at::Tensor depths;  // int64 [1 or I, R]
  at::Tensor mask;    // int64 [1 or I, R, W] as for `attend`
  // int64 [I, N]: the row whose logits decide what follows a node, its row end's or its own; undefined: its
  // own for all.
  at::Tensor deciding;
};
PassRows pass_rows(const DecodeState& state, const Draft& tree);

// The rows of a pass that stay: the accepted path and the row end behind its last node.
struct KeptRows {
  at::Tensor rows;   // int64 [I, D + 1], or [I, D + 2] where rows end; the root first, then -1
  at::Tensor count;  // int64 [I], rows after the root
};
KeptRows kept_rows(const Accepted& accepted, const at::Tensor& deciding);

}  // namespace lamplighter
