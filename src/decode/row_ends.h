#pragma once

#include <cstdint>
#include <optional>

#include "decode/state.h"

// Grids whose rows end with a forced token. It is never drafted, verified or sampled: trees stop at the last
// code of a row, and the target pass over a tree also runs the row end behind every node there. The row end's
// logits decide what comes after that node, so a forced token costs no pass of its own.
namespace lamplighter {

// The bits int64 [1, E, W] by which E row ends behind N nodes see themselves, W words of 64.
at::Tensor own_bits(std::int64_t nodes, std::int64_t row_ends, const c10::Device& device);

// Drops the nodes of a tree below the end of a row: their tokens become -1.
void stop_at_row_ends(const RunState& run, Draft& draft);

// The rows of a target pass over a draft.
struct PassRows {
  std::int64_t first_id = 0;
  at::Tensor codes;                      // int64 [I, R]: vocabulary ids less first_id; < 0: padding
  at::Tensor depths;                     // int64 [1 or I, R]
  at::Tensor mask;                       // int64 [1 or I, R, W] as for `attend`
  std::optional<at::Tensor> logits_row;  // Scores::logits_row
};
PassRows pass_rows(const DecodeState& state, const Draft& draft);

}  // namespace lamplighter
