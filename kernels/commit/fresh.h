#pragma once

#include <cstdint>

#include "kernels/commit/commit.h"

namespace lamplighter {

// fresh_rows: what EAGLE's drafter has to see next (Li et al. 2024, section 3). Of every row of the target's
// pass that stays: the features, the position, and the id that comes after it. An image takes no more tokens
// than it lacks; of one that is complete no row is fresh.
struct FreshRowsArgs : CommittedArgs {
  const char* features;      // [sequences, rows, feature_bytes], of the pass
  const int64_t* steps;      // [images], tokens committed before
  const int64_t* position;   // [sequences], of the root
  int64_t* fresh_count;      // out: [draft_sequences], valid rows of the following
  int64_t* fresh_ids;        // out: [draft_sequences, fresh_rows], those past the valid ones stay
  int64_t* fresh_positions;  // out: [draft_sequences, fresh_rows], at most last_position - 1
  char* fresh_features;      // out: [draft_sequences, fresh_rows, feature_bytes], those past kept_width stay
  int64_t draft_sequences;   // sequences, or images: then the first of every pair is read
  int64_t rows;
  int64_t fresh_rows;     // >= kept_width
  int64_t feature_bytes;  // of a row
};

// Queued on `stream` (a cudaStream_t) as one launch, without reading device memory on the host.
void fresh_rows_cuda(const FreshRowsArgs& args, void* stream);

}  // namespace lamplighter
