#pragma once

#include "kernels/commit/fresh.h"
#include "kernels/common/kernel_inline.h"

namespace lamplighter {

// Copies a row of features; `lanes` threads share it.
LAMPLIGHTER_INLINE void copy_features(const FreshRowsArgs& args, int64_t from, int64_t to, int64_t lane,
                                      int64_t lanes) {
  const char* source = args.features + from * args.feature_bytes;
  char* target = args.fresh_features + to * args.feature_bytes;
  for (int64_t i = 2 * lane; i < args.feature_bytes; i += 2 * lanes) {  // elements have 2 or 4 bytes
    target[i] = source[i];
    target[i + 1] = source[i + 1];
  }
}

// Row r of a sequence of the drafter.
LAMPLIGHTER_INLINE void fresh_row(const FreshRowsArgs& args, int64_t sequence, int64_t r, int64_t lane,
                                  int64_t lanes) {
  const int64_t image = sequence / (args.draft_sequences / args.images);
  const int64_t target = sequence * (args.sequences / args.draft_sequences);
  const int64_t most = args.width - 1, given = args.count[image];
  const int64_t count = given < 0 ? 0 : given < most ? given : most;
  const int64_t ended = args.kept_count[image] - given;  // 1: a row end follows the last accepted token
  const int64_t row = sequence * args.fresh_rows + r;
  if (r < args.kept_width) {
    const int64_t kept = args.kept_rows[image * args.kept_width + r];
    copy_features(args, target * args.rows + (kept < 0 ? 0 : kept), row, lane, lanes);
  }
  if (lane != 0) return;
  const int64_t at = args.position[target] + r, last = args.last_position - 1;
  args.fresh_positions[row] = at < 0 ? 0 : at < last ? at : last;
  if (r <= count + ended) {
    const int64_t j = r < count ? r : count;  // of the tokens that were accepted, and the bonus token
    const int64_t code = j < count ? args.tokens[image * args.nodes + args.path[image * args.width + j + 1]]
                                   : args.token[image];
    args.fresh_ids[row] = ended != 0 && r == count ? args.row_end : (code < 0 ? 0 : code) + args.first_image_id;
  }
  if (r != 0) return;
  const int64_t lacking = args.total - args.steps[image];
  args.fresh_count[sequence] = (count + 1 < lacking ? count + 1 : lacking) + ended;
}

}  // namespace lamplighter
