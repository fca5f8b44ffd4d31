#pragma once

#include "kernels/compact.h"
#include "kernels/kernel_inline.h"

namespace lamplighter {

// Calls copy(from, to) for the cache rows of one sequence that have to move, in an order that is safe in
// place.
template <class Copy>
LAMPLIGHTER_INLINE void compact_sequence(const CompactArgs& args, int64_t sequence, Copy copy) {
  const int64_t image = sequence / args.sequences_per_image;
  const int64_t* path = args.path + image * args.width;
  const int64_t length = args.lengths[sequence];
  const int64_t count = args.count[image] < args.width ? args.count[image] : args.width - 1;
  for (int64_t j = 1; j <= count; ++j) {
    if (path[j] != j) copy(length + path[j], length + j);
  }
}

}  // namespace lamplighter
