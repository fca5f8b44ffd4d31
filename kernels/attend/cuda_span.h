#pragma once

#include "kernels/attend/cuda_rows.h"
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
template <class T, int kHead>
__device__ void append_rows(const AttendArgs& args, const Span<T>& span) {
  constexpr int kPack = 8;
  constexpr int kPacks = kHead / kPack;
  const int64_t start = args.starts[blockIdx.z];
  const int64_t first = start < span.begin ? span.begin : start;
  const int64_t stop = start + args.rows < span.end ? start + args.rows : span.end;
  if (first >= stop) return;
  const int64_t blocks = args.heads + 2 * args.kv_heads;
  for (int64_t i = threadIdx.x; i < (stop - first) * kPacks; i += blockDim.x) {
    const int64_t index = first + i / kPacks;
    const int64_t row = index - start;
    const int64_t feature = i % kPacks * kPack;
    const T* from = static_cast<const T*>(args.qkv) +
                    ((int64_t{blockIdx.z} * args.rows + row) * blocks + args.heads + blockIdx.y) * kHead +
                    feature;
    const float* angles = rotary_row(args, blockIdx.z, row) + feature;
    auto key = load_pack<T, kPack>(from);
    for (int j = 0; j < kPack; j += 2) {
      const auto pair = rotate(key.element[j], key.element[j + 1], angles + j);
      key.element[j] = pair.first;
      key.element[j + 1] = pair.second;
    }
    store_pack(span.keys + index * kHead + feature, key);
    store_pack(span.values + index * kHead + feature, load_pack<T, kPack>(from + args.kv_heads * kHead));
  }
  __syncthreads();
}

// Keys and values of the kTileKeys cache indices from `begin` on in shared memory, one of kStages tiles.
// Packs of 8 features trade places by row, so that the 8 rows of a matrix load lie in different banks.
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
      T* pack = values + at(row, i % kPacks);
      for (int j = 0; j < 8; ++j) {
        if (fabsf(widen(pack[j])) < -minus_infinity()) continue;
        pack[j] = T{};
        atomicOr(bad, 1U << row);
      }
    }
  }
};

}  // namespace
}  // namespace lamplighter
