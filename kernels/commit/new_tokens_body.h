#pragma once

#include "kernels/commit/commit_body.h"
#include "kernels/commit/new_tokens.h"

namespace lamplighter {

// Row r of a sequence of the drafter; every one of `lanes` threads calls it with its number.
LAMPLIGHTER_INLINE void new_token(const NewTokensArgs& args, int64_t sequence, int64_t r, int64_t lane,
                                  int64_t lanes) {
  const int64_t image = sequence / (args.draft_sequences / args.images);
  const int64_t target = sequence * (args.sequences / args.draft_sequences);
  const int64_t row = sequence * args.new_tokens + r;
  if (r < args.kept_width) {
    const int64_t kept = args.kept_rows[image * args.kept_width + r];
    // Elements have 2 or 4 bytes.
    const auto* from = reinterpret_cast<const uint16_t*>(
        args.features + (target * args.rows + (kept < 0 ? 0 : kept)) * args.feature_bytes);
    auto* to = reinterpret_cast<uint16_t*>(args.new_features + row * args.feature_bytes);
    for (int64_t i = lane; i < args.feature_bytes / 2; i += lanes) to[i] = from[i];
  }
  if (lane != 0) return;
  const int64_t at = args.position[target] + r, last = args.last_position - 1;
  args.new_positions[row] = at < 0 ? 0 : at < last ? at : last;
  const Committed c = committed(args, image, args.steps[image]);
  if (r <= c.count + c.ended) {  // past them lies an id, too
    const int64_t code = c.code(r < c.count ? r : c.count);
    args.new_ids[row] =
        c.ended != 0 && r == c.count ? args.row_end : (code < 0 ? 0 : code) + args.first_image_id;
  }
  if (r == 0) args.new_count[sequence] = c.advance + c.ended;
}

}  // namespace lamplighter
