#pragma once

#include "kernels/commit/compact_body.h"
#include "kernels/common/cuda/numbers.h"

// Kernel of compact.h on CUDA.
namespace lamplighter {
namespace {

constexpr int kCompactThreads = 256;
constexpr int kMovesAtOnce = 4;  // loads that a thread has in flight

// A thread moves one pack of all rows of a plane, sequence and head: what it reads, no other thread writes.
// Rows come from behind where earlier ones go, so some can be read before the first is written.
template <class Word>
__global__ void __launch_bounds__(kCompactThreads) compact_kernel(CompactArgs args) {
  const int64_t words = args.row_bytes / static_cast<int64_t>(sizeof(Word));
  const int64_t thread = int64_t{blockIdx.x} * kCompactThreads + threadIdx.x;
  const int64_t item = thread / words;  // (plane, sequence, head)
  if (item >= args.planes * args.sequences * args.kv_heads) return;
  Word* column = static_cast<Word*>(args.cache) + item * args.slots * words + thread % words;
  const Moves moves(args, item / args.kv_heads % args.sequences);
  for (int64_t first = 1; first <= moves.count; first += kMovesAtOnce) {
    Word held[kMovesAtOnce];
    int64_t sources[kMovesAtOnce];
#pragma unroll
    for (int i = 0; i < kMovesAtOnce; ++i) {
      sources[i] = moves.source(first + i);
      if (sources[i] >= 0) held[i] = column[sources[i] * words];
    }
#pragma unroll
    for (int i = 0; i < kMovesAtOnce; ++i) {
      if (sources[i] >= 0) column[moves.target(first + i) * words] = held[i];
    }
  }
}

}  // namespace
}  // namespace lamplighter
