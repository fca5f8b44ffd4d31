#pragma once

#include <cstdint>

#include "kernels/commit/commit.h"

namespace lamplighter {

// new_tokens: what EAGLE's draft model reads next (Li et al. 2024, section 3): the features, the position and
// the next id of every row of the target's pass that stays. A complete image has no new tokens.
struct NewTokensArgs : CommittedArgs {
  const char* features;     // [sequences, rows, feature_bytes], of the pass
  const int64_t* steps;     // [images], tokens committed before
  const int64_t* position;  // [sequences], of the root
  int64_t* new_count;       // out: [draft_sequences], valid rows of the following
  int64_t* new_ids;         // out: [draft_sequences, new_tokens], those past the valid ones stay
  int64_t* new_positions;   // out: [draft_sequences, new_tokens], at most last_position - 1
  char* new_features;       // out: [draft_sequences, new_tokens, feature_bytes], those past kept_width stay
  int64_t draft_sequences;  // sequences, or images: then the first of every pair is read
  int64_t rows;
  int64_t new_tokens;     // >= kept_width
  int64_t feature_bytes;  // of a row
};

// Queued on `stream` (a cudaStream_t) as one launch, without reading device memory on the host.
void new_tokens_cuda(const NewTokensArgs& args, void* stream);

}  // namespace lamplighter
