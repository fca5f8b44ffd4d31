#pragma once

#include "kernels/attend/cuda_features.h"
#include "kernels/attend/plan.h"

// A block's share of attention on tensor cores: one span of the cache for all rows of one key/value head.
namespace lamplighter {
namespace {

// Sequence blockIdx.z, key/value head blockIdx.y, indices from blockIdx.x * keys on.
template <class T>
struct Span {
  T* keys;  // [max_length, head_dim]
  T* values;
  int length;  // of the prefix
  int start;   // cache index of the first new row
  int begin;   // cache indices of the block
  int end;
};

// Rows of the pass see cache indices below this one alone.
__device__ inline int64_t visible_end(const AttendArgs& args, const AttendPass& pass, int64_t sequence,
                                      int64_t length) {
  const int64_t columns =
      args.tree_mask == nullptr ? pass.first + pass.count : mask_columns(args, sequence, length);
  return length + columns < args.max_length ? length + columns : args.max_length;
}

template <class T>
__device__ Span<T> find_span(const AttendArgs& args, const AttendPass& pass) {
  Span<T> span{};
  span.start = static_cast<int>(args.starts[blockIdx.z]);
  span.length = static_cast<int>(prefix_length(args, blockIdx.z));
  span.begin = static_cast<int>(blockIdx.x) * pass.keys;
  const int end = static_cast<int>(visible_end(args, pass, blockIdx.z, span.length));
  span.end = min(end, span.begin + pass.keys);
  const int64_t plane = (int64_t{blockIdx.z} * args.kv_heads + blockIdx.y) * args.max_length * args.head_dim;
  span.keys = static_cast<T*>(args.keys) + plane;
  span.values = static_cast<T*>(args.values) + plane;
  return span;
}

// Rotated keys and values of the new rows that lie in the span go into the cache, before the block reads
// them. No other block of a launch touches these entries; later passes write the same bits again.
template <class T, int kHead, int kSlices>
__device__ void append_rows(const AttendArgs& args, const Span<T>& span) {
  constexpr int kPacks = kHead / kFeatures;
  constexpr int kShare = kTileQueries * kPacks / (32 * kSlices);  // rows of a thread, one per query
  constexpr int kAtOnce = kShare < 4 ? kShare : 4;                // of which the loads overlap
  const int first = max(span.start, span.begin);
  const int stop = min(span.start + static_cast<int>(args.rows), span.end);
  if (first >= stop) return;
  const int64_t blocks = args.heads + 2 * args.kv_heads;
  const int feature = static_cast<int>(threadIdx.x) % kPacks * kFeatures;
  const int step = static_cast<int>(blockDim.x) / kPacks;
  for (int begin = first + static_cast<int>(threadIdx.x) / kPacks; begin < stop; begin += kAtOnce * step) {
    // The last row stands in for those past the end.
    const auto index = [&](int i) { return min(begin + i * step, stop - 1); };
    Features<T> keys[kAtOnce], values[kAtOnce];
    Pack<float, kFeatures> angles[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t row = index(i) - span.start;
      const T* from = static_cast<const T*>(args.qkv) + feature +
                      ((int64_t{blockIdx.z} * args.rows + row) * blocks + args.heads + blockIdx.y) * kHead;
      keys[i] = Features<T>::load(from);
      values[i] = Features<T>::load(from + args.kv_heads * kHead);
      angles[i] = load_pack<float, kFeatures>(rotary_row(args, blockIdx.z, row) + feature);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int to = index(i) * kHead + feature;
      turned(keys[i], angles[i]).store(span.keys + to);
      values[i].store(span.values + to);
    }
  }
  __syncthreads();
}

// Keys and values of the kTileKeys cache indices from `begin` on in shared memory, one of kStages tiles.
// Packs of 8 features trade positions by row, so that the 8 rows of a matrix load lie in different banks.
template <class T, int kHead>
struct KeyTile {
  static constexpr int kPacks = kHead / 8;
  static constexpr int kStages = kTileBytes / (2 * kTileKeys * kHead * static_cast<int>(sizeof(T)));
  T* keys;
  T* values;

  __device__ explicit KeyTile(int begin)
      : keys(reinterpret_cast<T*>(shared_memory()) + begin / kTileKeys % kStages * (2 * kTileKeys * kHead)),
        values(keys + kTileKeys * kHead) {}

  // Place of pack `pack + lane` of a row; `lane` below 8, no bit set in both. Few values differ by lane.
  __device__ static int at(int row, int pack, int lane = 0) {
    return row * kHead + ((lane ^ (row & 7) ^ (pack & 7)) + (pack & ~7)) * 8;
  }

  // Starts the copies from `begin` on; indices past the span's end give zeros.
  __device__ void fetch(const Span<T>& span, int begin) const {
    for (int i = static_cast<int>(threadIdx.x); i < kTileKeys * kPacks; i += static_cast<int>(blockDim.x)) {
      const int row = i / kPacks;
      const int pack = i % kPacks;
      const int index = begin + row;
      const int64_t from = int64_t{min(index, span.end - 1)} * kHead + pack * 8;
      copy_async(keys + at(row, pack), span.keys + from, index < span.end);
      copy_async(values + at(row, pack), span.values + from, index < span.end);
    }
  }

  // Values that are not finite would reach rows that do not see them, as 0 * infinity. Those behind the
  // prefix become 0 and their keys are marked in *bad.
  __device__ void clear_bad(int begin, int length, unsigned* bad) const {
    for (int i = static_cast<int>(threadIdx.x); i < kTileKeys * kPacks; i += static_cast<int>(blockDim.x)) {
      const int row = i / kPacks;
      if (begin + row < length) continue;
      T* at_pack = values + at(row, i % kPacks);
      auto pack = load_pack<T, 8>(at_pack);
      bool finite = true;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if (fabsf(widen(pack.element[j])) < -minus_infinity()) continue;
        pack.element[j] = T{};
        finite = false;
      }
      if (finite) continue;
      store_pack(at_pack, pack);
      atomicOr(bad, 1U << row);
    }
  }
};

}  // namespace
}  // namespace lamplighter
