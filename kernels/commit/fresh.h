#pragma once

#include <cstdint>

namespace lamplighter {

// fresh_rows: what EAGLE's drafter has to see next (Li et al. 2024, section 3): of every row of the target's
// pass that was kept, the features, the position, and the id that came after it. An image takes no more tokens
// than it lacks; of one that is complete no row is fresh.
struct FreshRowsArgs {
  const int64_t* tokens;      // [images, nodes], codes; < 0: padding
  const int64_t* path;        // [images, width], accepted nodes, the root first, then -1
  const int64_t* count;       // [images], accepted nodes but the root, 0 .. width - 1
  const int64_t* token;       // [images], the bonus token; -1: its logits were no distribution
  const int64_t* kept_rows;   // [images, kept_width], rows of the pass, the root first, then -1
  const int64_t* kept_count;  // [images], count, or count + 1 where a row end was kept
  const char* features;       // [sequences, rows, feature_bytes], of the pass
  const int64_t* steps;       // [images], tokens committed before
  const int64_t* position;    // [sequences], of the root
  int64_t* fresh_count;       // out: [draft_sequences], valid rows below
  int64_t* fresh_ids;         // out: [draft_sequences, fresh_rows], those past the valid ones stay
  int64_t* fresh_positions;   // out: [draft_sequences, fresh_rows], at most last_position - 1
  char* fresh_features;       // out: [draft_sequences, fresh_rows, feature_bytes], those past kept_width stay
  int64_t images;
  int64_t nodes;
  int64_t width;
  int64_t kept_width;
  int64_t sequences;        // images, or 2 images as interleaved pairs
  int64_t draft_sequences;  // likewise; one per image reads the first of a pair
  int64_t rows;
  int64_t fresh_rows;     // >= kept_width
  int64_t feature_bytes;  // of a row
  int64_t total;          // codes of a picture
  int64_t last_position;
  int64_t first_image_id;
  int64_t row_end;  // id of the forced token
};

// Queued on `stream` (a cudaStream_t) as one launch.
void fresh_rows_cuda(const FreshRowsArgs& args, void* stream);

}  // namespace lamplighter
