#pragma once

#include <cstdint>

#include "kernels/common/kernel_inline.h"

namespace lamplighter {

// What a cycle does besides running models, sampling and verification. I = images, S = sequences: I, or 2 I
// as interleaved pairs; Sd = sequences of the draft model, likewise.

// tree_rows: nodes of a tree as rows of a pass. ids[s][r] = max(codes[i][r], 0) + first_id, positions[s][r] =
// min(position[s] + depths[i][r], last_position), i the image of sequence s.
struct TreeRowsArgs {
  const int64_t* codes;     // [images, rows]; < 0: padding, whose result is not used
  const int64_t* depths;    // [1 or images, 1 or rows]
  const int64_t* position;  // [sequences]
  int64_t* ids;             // [sequences, rows]
  int64_t* positions;       // [sequences, rows]
  int64_t rows;
  int64_t sequences;
  int64_t sequences_per_image;
  int64_t depth_images;
  int64_t depth_rows;
  int64_t first_id;
  int64_t last_position;
};

// Columns of a cycle's report on an image. D = greatest depth of a tree.
namespace report {
constexpr int64_t kImage = 0, kFirst = 1, kSteps = 2, kAccepted = 3, kBad = 4, kCodes = 5;
LAMPLIGHTER_INLINE constexpr int64_t path(int64_t depth) {  // after D + 2 codes from the root on
  return kCodes + depth + 2;
}
LAMPLIGHTER_INLINE constexpr int64_t drafted(int64_t depth) {  // after the D + 1 nodes of the path
  return path(depth) + depth + 1;
}
// After the numbers of drafted nodes at depth 0 .. D.
LAMPLIGHTER_INLINE constexpr int64_t width(int64_t depth) {
  return drafted(depth) + depth + 1;
}
// D of a report with that many columns.
LAMPLIGHTER_INLINE constexpr int64_t depth_of(int64_t columns) {
  return (columns - width(0)) / (width(1) - width(0));
}
}  // namespace report

// What a cycle accepted, as commit_tokens and new_tokens read it. `kept` are the cache rows that stay: the
// accepted nodes, and the row end behind the last of them where rows of codes end with a forced token.
struct CommittedArgs {
  const int64_t* tokens;      // [images, nodes], codes; < 0: padding; may be the roots
  const int64_t* path;        // [images, width], accepted nodes, the root first, then -1; null: the root
  const int64_t* count;       // [images], accepted nodes but the root, 0 .. width - 1
  const int64_t* token;       // [images], the bonus token; -1: its logits were no distribution
  const int64_t* kept_rows;   // [images, kept_width], the root first, then -1
  const int64_t* kept_count;  // [images], count or count + 1
  int64_t images;
  int64_t sequences;  // images, or 2 images as interleaved pairs
  int64_t nodes;
  int64_t width;
  int64_t kept_width;
  int64_t total;  // codes of an image
  int64_t last_position;
  int64_t first_image_id;
  int64_t row_end;  // id of the forced token
};

// commit_tokens: appends what was accepted to the tokens of every image and advances its counters. An image
// never gets more than `total` tokens; a complete image does not change.
struct CommitArgs : CommittedArgs {
  const int64_t* depths;  // [1 or images, nodes]; null: 0
  const int64_t* status;  // [images], of verify_tree
  const int64_t* image;   // [images], numbers for the report
  int64_t* steps;         // [images], tokens committed
  int64_t* codes;         // [images, code_columns], code_columns >= total + width
  int64_t* root;          // [images], the last committed code, 0 where it is bad
  bool* bad;              // [images], set where token < 0
  int64_t* lengths;       // [sequences], committed rows of the target's cache
  int64_t* position;      // [sequences], of the root
  int64_t* report;        // [images, report::width(report_depth)]
  // The root as a row of the next pass, as tree_rows gives it; null: not kept.
  int64_t* root_ids;        // [sequences]
  int64_t* root_positions;  // [sequences]
  int64_t depth_images;     // 1 or images
  int64_t code_columns;
  int64_t report_depth;
};

// Queued on `stream` (a cudaStream_t) as one launch each, without reading device memory on the host.
void tree_rows_cuda(const TreeRowsArgs& args, void* stream);
void commit_tokens_cuda(const CommitArgs& args, void* stream);

}  // namespace lamplighter
