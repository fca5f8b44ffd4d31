#pragma once

#include "kernels/commit/commit.h"
#include "kernels/common/kernel_inline.h"
#include "kernels/verify/verify.h"

namespace lamplighter {

LAMPLIGHTER_INLINE int64_t row_id(int64_t code, int64_t first_id) {
  return (code < 0 ? 0 : code) + first_id;
}

LAMPLIGHTER_INLINE int64_t row_position(int64_t position, int64_t last_position) {
  return position < last_position ? position : last_position;
}

LAMPLIGHTER_INLINE void tree_row(const TreeRowsArgs& args, int64_t sequence, int64_t row) {
  const int64_t image = sequence / args.sequences_per_image;
  const int64_t depth =
      args.depths[(args.depth_images == 1 ? 0 : image) * args.depth_rows + (args.depth_rows == 1 ? 0 : row)];
  const int64_t code = args.codes[image * args.rows + row];
  const int64_t position = args.position[sequence] + depth;
  args.ids[sequence * args.rows + row] = row_id(code, args.first_id);
  args.positions[sequence * args.rows + row] = row_position(position, args.last_position);
}

// What a cycle committed to one image.
struct Committed {
  const int64_t* tokens;  // of the tree
  const int64_t* path;    // null: of the root alone
  int64_t count;          // drafted tokens that were accepted
  int64_t token;          // bonus
  int64_t ended;          // 1: a row end follows the last of them
  int64_t steps;          // before
  int64_t advance;

  LAMPLIGHTER_INLINE int64_t node(int64_t j) const { return path == nullptr ? 0 : path[j]; }
  // j = 0 .. count
  LAMPLIGHTER_INLINE int64_t code(int64_t j) const { return j < count ? tokens[node(j + 1)] : token; }
};

// How many of `count` drafted tokens and the bonus token an image of `total` codes still takes.
LAMPLIGHTER_INLINE int64_t advance(int64_t count, int64_t steps, int64_t total) {
  return count + 1 < total - steps ? count + 1 : total - steps;
}

LAMPLIGHTER_INLINE Committed committed(const CommittedArgs& args, int64_t image, int64_t steps) {
  Committed c{};
  const int64_t count = args.count[image], most = args.width - 1;
  c.tokens = args.tokens + image * args.nodes;
  c.path = args.path + image * args.width;
  c.count = count < 0 ? 0 : count < most ? count : most;
  c.token = args.token[image];
  c.ended = args.kept_count[image] - count;
  c.steps = steps;
  c.advance = advance(c.count, steps, args.total);
  return c;
}

// The same of a token behind the root, where nothing is drafted.
LAMPLIGHTER_INLINE Committed committed_token(const CommitArgs& args, int64_t image, int64_t token,
                                             bool ended) {
  const int64_t steps = args.steps[image];
  return {args.tokens + image, nullptr, 0, token, ended ? 1 : 0, steps, advance(0, steps, args.total)};
}

// Column `at` of the report.
LAMPLIGHTER_INLINE int64_t reported(const CommitArgs& args, const Committed& c, int64_t status, int64_t image,
                                    int64_t at) {
  const int64_t depth = args.report_depth;
  if (at == report::kImage) return args.image[image];
  if (at == report::kFirst) return c.steps;
  if (at == report::kSteps) return c.steps + c.advance;
  if (at == report::kAccepted) return c.count;
  if (at == report::kBad)
    return (args.bad[image] || c.token < 0 ? kVerifyBadTarget : 0) | (status & kVerifyBadDraft);
  if (at == report::kCodes) return args.root[image];
  if (at < report::path(depth)) {
    const int64_t j = at - report::kCodes - 1;
    return j <= c.count ? c.code(j) : 0;
  }
  if (at < report::drafted(depth)) {
    const int64_t j = at - report::path(depth);
    return j < args.width ? c.node(j) : -1;
  }
  const int64_t first = args.depth_images == 1 ? 0 : image * args.nodes;
  int64_t drafted = 0;
  for (int64_t n = 0; n < args.nodes; ++n) {
    const int64_t own = args.depths == nullptr ? 0 : args.depths[first + n];
    drafted += static_cast<int64_t>((own == at - report::drafted(depth)) & (c.tokens[n] >= 0));
  }
  return drafted;
}

// status: of verification. Every one of `lanes` threads calls it with its number; sync() is a barrier of
// theirs.
template <class Sync>
LAMPLIGHTER_INLINE void commit_to(const CommitArgs& args, const Committed& c, int64_t status, int64_t image,
                                  int64_t lane, int64_t lanes, Sync sync) {
  const int64_t last = c.advance > 0 ? c.code(c.advance - 1) : args.root[image];
  const int64_t each = args.sequences / args.images;
  for (int64_t j = lane; j <= c.count; j += lanes)
    args.codes[image * args.code_columns + c.steps + j] = c.code(j);
  const int64_t columns = report::width(args.report_depth);
  for (int64_t i = lane; i < columns; i += lanes)
    args.report[image * columns + i] = reported(args, c, status, image, i);
  sync();  // all lanes have read what lane 0 changes: tokens may be the root
  if (lane != 0) return;
  const int64_t rows = c.advance + c.ended;
  args.steps[image] = c.steps + c.advance;
  const int64_t root = args.root[image] = last < 0 ? 0 : last;
  if (c.token < 0) args.bad[image] = true;
  for (int64_t s = image * each; s < (image + 1) * each; ++s) {
    args.lengths[s] += rows;
    args.position[s] += rows;
    if (args.root_ids == nullptr) continue;
    args.root_ids[s] = row_id(root, args.first_image_id);
    args.root_positions[s] = row_position(args.position[s], args.last_position);
  }
}

// What a cycle accepted.
template <class Sync>
LAMPLIGHTER_INLINE void commit_image(const CommitArgs& args, int64_t image, int64_t lane, int64_t lanes,
                                     Sync sync) {
  commit_to(args, committed(args, image, args.steps[image]), args.status[image], image, lane, lanes, sync);
}

}  // namespace lamplighter
