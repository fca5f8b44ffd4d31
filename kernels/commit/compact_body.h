#pragma once

#include "kernels/commit/compact.h"
#include "kernels/common/kernel_inline.h"

namespace lamplighter {

// The cache rows of one sequence that have to move: source(j) goes to target(j) for j = 1..count, in this
// order, or several at once when all are read before the first is written.
struct Moves {
  const int64_t* path;
  int64_t slots;
  int64_t length;
  int64_t count;

  LAMPLIGHTER_INLINE Moves(const CompactArgs& args, int64_t sequence)
      : slots(args.slots), length(args.lengths[sequence]) {
    const int64_t image = sequence / args.sequences_per_image;
    path = args.path + image * args.width;
    count = args.count[image] < args.width ? args.count[image] : args.width - 1;
  }

  LAMPLIGHTER_INLINE int64_t target(int64_t j) const { return length + j; }

  // -1: nothing moves.
  LAMPLIGHTER_INLINE int64_t source(int64_t j) const {
    if (j > count || path[j] == j) return -1;
    const int64_t row = length + path[j];
    return is_inside(row) && is_inside(target(j)) ? row : -1;
  }

  LAMPLIGHTER_INLINE bool is_inside(int64_t row) const { return row >= 0 && row < slots; }
};

}  // namespace lamplighter
