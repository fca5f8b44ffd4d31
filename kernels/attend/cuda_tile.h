#pragma once

#include "kernels/attend/cuda_cache.h"

// The steps of cuda_general.h's partial_kernel: one block, one split of the keys, a few queries.
//
// A row's visible keys have ordinals 0, 1, 2, ... in index order: the prefix, then the columns that it sees.
// The work is split at multiples of kKeys ordinals, so a row's bits do not depend on where the prefix ends,
// on other rows or on hidden keys. Products and sums name their rounding: every instantiation gives equal
// bits.
namespace lamplighter {
namespace {

constexpr int kKeys = 128;        // ordinals per split, threads per block of partial_kernel
constexpr int kRowsPerPass = 64;  // rows that share a workspace

// Rows [begin, begin + count) of every sequence.
struct Rows {
  int begin;
  int count;
};

// Results of the splits: [splits, sequences, kRowsPerPass, heads] of a maximum, a sum and head_dim weighted
// sums.
struct Workspace {
  void* queries;  // [sequences, rows, heads, head_dim], rotated
  float* sums;
  float* totals;
  float* maxima;
  int splits;

  __device__ int64_t item(const AttendArgs& args, int split, int64_t sequence, int row, int64_t head) const {
    return ((split * args.sequences + sequence) * kRowsPerPass + row) * args.heads + head;
  }
};

// Word w of a mask without the bits past its columns.
__device__ unsigned long long mask_word(const int64_t* words, int64_t w, int64_t columns) {
  const int64_t left = columns - w * 64;
  const unsigned long long keep = left >= 64 ? ~0ULL : left > 0 ? (1ULL << left) - 1 : 0;
  return static_cast<unsigned long long>(words[w]) & keep;
}

// Number of keys that a row sees.
__device__ int64_t visible_keys(const AttendArgs& args, int64_t sequence, int64_t row, int64_t length) {
  int64_t count = length + row + 1;
  if (args.tree_mask != nullptr) {
    count = length;
    const int64_t* words = mask_row(args, sequence, row);
    const int64_t columns = mask_columns(args, sequence, length);
    for (int64_t w = 0; w < args.mask_words; ++w) count += __popcll(mask_word(words, w, columns));
  }
  return count < args.max_length ? count : args.max_length;
}

// The queries of one block: up to kQueries (row, head) pairs that read the same key/value head.
template <int kQueries>
struct Tile {
  float query[kQueries][kLargestHead];
  float weight[kQueries][kKeys];  // scores, then exp(score - maximum)
  float part[kQueries * 2 * kKeys];
  int key[kQueries][kKeys];  // cache index of each ordinal of the split, -1 past the visible ones
};

template <class Cache>
struct Split {
  Cache keys;  // of the sequence and key/value head
  Cache values;
  int64_t sequence = 0;
  int64_t kv_head = 0;
  int64_t group = 0;    // query heads per key/value head
  int64_t length = 0;   // of the prefix
  int64_t columns = 0;  // of the mask
  int64_t begin = 0;    // first ordinal
  int64_t first = 0;    // first query: row * group + head within the group
  int count = 0;        // queries

  __device__ int64_t row(int q) const { return (first + q) / group; }
  __device__ int64_t head(int q) const { return kv_head * group + (first + q) % group; }
};

template <class Cache, int kQueries>
__device__ void load_tile(const AttendArgs& args, const Workspace& workspace, const Split<Cache>& split,
                          Tile<kQueries>& tile) {
  using T = typename Cache::Element;
  const int size = static_cast<int>(args.head_dim);
  for (int q = 0; q < kQueries; ++q) {
    const int64_t row = split.row(q);
    const T* query = static_cast<const T*>(workspace.queries) +
                     ((split.sequence * args.rows + row) * args.heads + split.head(q)) * size;
    for (int d = static_cast<int>(threadIdx.x); d < size; d += kKeys) {
      tile.query[q][d] = q < split.count ? widen(query[d]) : 0.0F;
    }
    const int64_t ordinal = split.begin + threadIdx.x;
    const bool causal = args.tree_mask == nullptr && ordinal <= split.length + row;
    const bool seen = ordinal < args.max_length && (ordinal < split.length || causal);
    tile.key[q][threadIdx.x] = seen && q < split.count ? static_cast<int>(ordinal) : -1;
  }
  __syncthreads();
  if (args.tree_mask != nullptr && static_cast<int>(threadIdx.x) < split.count) {
    const int q = static_cast<int>(threadIdx.x);
    const int64_t* words = mask_row(args, split.sequence, split.row(q));
    int64_t slot = split.length - split.begin;
    for (int64_t w = 0; w < args.mask_words; ++w) {
      for (auto bits = mask_word(words, w, split.columns); bits != 0; bits &= bits - 1) {
        const int64_t key = split.length + w * 64 + __ffsll(static_cast<long long>(bits)) - 1;
        if (slot >= 0 && slot < kKeys && key < args.max_length) tile.key[q][slot] = static_cast<int>(key);
        ++slot;
      }
    }
  }
  __syncthreads();
}

// weight[i][t] = scale * q.k of kCount queries from `first` on for one key, t = thread.
template <int kPack, int kCount, class Row, int kQueries>
__device__ void dot(const AttendArgs& args, const Row& key, int first, Tile<kQueries>& tile) {
  float sum[kCount] = {};
  for (int d = 0; d < static_cast<int>(args.head_dim); d += kPack) {
    float feature[kPack];
    key.load(d, feature);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) sum[i] = __fmaf_rn(tile.query[first + i][d + j], feature[j], sum[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) tile.weight[first + i][threadIdx.x] = __fmul_rn(sum[i], args.scale);
}

// Scores of all queries and ordinals; thread t takes ordinal t of the split.
template <int kPack, class Cache, int kQueries>
__device__ void score(const AttendArgs& args, const Split<Cache>& split, Tile<kQueries>& tile) {
  const int64_t ordinal = split.begin + threadIdx.x;
  if (ordinal < split.length) {
    dot<kPack, kQueries>(args, split.keys.row(ordinal), 0, tile);
  } else {
    for (int q = 0; q < kQueries; ++q) {
      const int64_t key = tile.key[q][threadIdx.x];
      if (key >= 0) {
        dot<kPack, 1>(args, split.keys.row(key), q, tile);
      } else {
        tile.weight[q][threadIdx.x] = minus_infinity();
      }
    }
  }
  __syncthreads();
}

// weight = exp(score - maximum) and the sum of them; one warp per query.
template <class Cache, int kQueries>
__device__ void weigh(const AttendArgs& args, const Workspace& workspace, const Split<Cache>& split,
                      const Rows& rows, Tile<kQueries>& tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int q = static_cast<int>(threadIdx.x) / 32; q < split.count; q += kKeys / 32) {
    float* weight = tile.weight[q];
    float maximum = minus_infinity();
    for (int t = lane; t < kKeys; t += 32) maximum = fmaxf(maximum, weight[t]);
    for (int step = 16; step > 0; step /= 2) maximum = fmaxf(maximum, __shfl_xor_sync(~0U, maximum, step));
    float sum = 0.0F;
    for (int t = lane; t < kKeys; t += 32) {
      weight[t] = tile.key[q][t] < 0 ? 0.0F : expf(__fsub_rn(weight[t], maximum));
      sum = __fadd_rn(sum, weight[t]);
    }
    for (int step = 16; step > 0; step /= 2) sum = __fadd_rn(sum, __shfl_xor_sync(~0U, sum, step));
    if (lane == 0) {
      const int row = static_cast<int>(split.row(q)) - rows.begin;
      const int64_t item =
          workspace.item(args, static_cast<int>(split.begin / kKeys), split.sequence, row, split.head(q));
      workspace.maxima[item] = maximum;
      workspace.totals[item] = sum;
    }
  }
  __syncthreads();
}

// Weighted sums of the values: a thread takes two features and every groups-th ordinal, then the groups add
// up.
template <class Cache, int kQueries>
__device__ void sum_values(const AttendArgs& args, const Workspace& workspace, const Split<Cache>& split,
                           const Rows& rows, Tile<kQueries>& tile) {
  const int size = static_cast<int>(args.head_dim);
  const int groups = 2 * kKeys / size;
  const int group = static_cast<int>(threadIdx.x) / (size / 2);
  const int d = static_cast<int>(threadIdx.x) % (size / 2) * 2;
  float sum[kQueries][2] = {};
  for (int t = group; group < groups && t < kKeys; t += groups) {
    if (split.begin + t < split.length) {
      const auto v = split.values.row(split.begin + t);
      const float first = v.at(d);
      const float second = v.at(d + 1);
#pragma unroll
      for (int q = 0; q < kQueries; ++q) {
        sum[q][0] = __fmaf_rn(tile.weight[q][t], first, sum[q][0]);
        sum[q][1] = __fmaf_rn(tile.weight[q][t], second, sum[q][1]);
      }
      continue;
    }
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
      const int key = tile.key[q][t];
      if (key < 0) continue;
      const auto v = split.values.row(key);
      sum[q][0] = __fmaf_rn(tile.weight[q][t], v.at(d), sum[q][0]);
      sum[q][1] = __fmaf_rn(tile.weight[q][t], v.at(d + 1), sum[q][1]);
    }
  }
  if (group < groups) {
    for (int q = 0; q < kQueries; ++q) {
      tile.part[(group * kQueries + q) * size + d] = sum[q][0];
      tile.part[(group * kQueries + q) * size + d + 1] = sum[q][1];
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < split.count * size; i += kKeys) {
    float total = 0.0F;
    for (int g = 0; g < groups; ++g) total = __fadd_rn(total, tile.part[g * kQueries * size + i]);
    const int q = i / size;
    const int row = static_cast<int>(split.row(q)) - rows.begin;
    const int64_t item =
        workspace.item(args, static_cast<int>(split.begin / kKeys), split.sequence, row, split.head(q));
    workspace.sums[item * size + i % size] = total;
  }
}

}  // namespace
}  // namespace lamplighter
