#pragma once

#include "kernels/attend/cuda_span.h"

// Attention on tensor cores: a block streams one span of keys and values through shared memory, once for all
// rows and query heads of its key/value head; attend_join_kernel (cuda_join.h) adds the spans up. Two
// launches per kMostQueries queries of a key/value head, whatever the lengths.
//
// Equal bits: scores are chains over the features, weighted values chains over the cache indices of the span
// in steps of 16, spans are joined in order. So a row's bits depend on its query and on the keys and values
// that it sees at their cache indices; not on other rows or their number, on hidden keys, on where the prefix
// ends, or on the batch. The same keys at other cache indices (a branch of a tree, before it is moved next to
// the prefix) may give other bits: a tensor core adds 16 products in an order of its own.
//
// A warp takes 16 queries and all keys of a tile. Few queries of few features have kSlices warps per 16: all
// of them compute the same scores and weights, and each sums its part of the features. These calls are bound
// by latency, and this way four to eight warps share the steps without talking to each other.
//
// Per block: kSpanSharedBytes of shared memory, 3/4 of it or more in flight; at most 168 registers per
// thread, so that 3 blocks of 4 warps fit where the shared memory does.
namespace lamplighter {
namespace {

// Bits [0, count), count of any size.
__device__ inline unsigned long long low_bits(int count) {
  return count >= 64 ? ~0ULL : count > 0 ? (1ULL << count) - 1 : 0;
}

// Bit j < kTileKeys: the row sees cache index begin + j.
template <class T>
__device__ unsigned visible_keys(const AttendArgs& args, const Span<T>& span, int row, int begin) {
  unsigned long long bits = low_bits(span.length + row + 1 - begin);
  if (args.tree_mask != nullptr) {
    const int64_t* words = mask_row(args, blockIdx.z, row);
    const auto word = [&](int w) {
      return w < args.mask_words ? static_cast<unsigned long long>(words[w]) : 0ULL;
    };
    const int column = begin - span.length;  // of bit 0
    if (column < 0) {
      bits = low_bits(-column) | (column > -64 ? word(0) << -column : 0);
    } else {
      const int shift = column % 64;
      bits = word(column / 64) >> shift | (shift > 0 ? word(column / 64 + 1) << (64 - shift) : 0);
    }
  }
  static_assert(kTileKeys == 32, "the bits of a tile fill a word");
  return static_cast<unsigned>(bits & low_bits(span.end - begin));
}

// Lane t of four gives word i to lane i, as its word t.
__device__ __forceinline__ void transpose(uint32_t (&word)[4]) {
#pragma unroll
  for (int step = 1; step < 4; step *= 2) {
    const bool upper = (threadIdx.x & step) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & step) != 0) continue;
      const uint32_t got = __shfl_xor_sync(~0U, upper ? word[i] : word[i + step], step);
      (upper ? word[i] : word[i + step]) = got;
    }
  }
}

// 16 queries of a warp. With g = lane / 4 and t = lane % 4 a lane holds what concerns queries g and g + 8
// (index `half`) and elements 2 t, 2 t + 1 of every 8.
template <class T, int kHead, int kSlices>
class QueryTile {
 public:
  // A lane loads and rotates every fourth 16 bytes of its queries; then lanes trade words.
  __device__ QueryTile(const AttendArgs& args, const AttendPass& pass, const Span<T>& span)
      : args_(args), pass_(pass), span_(span) {
    constexpr int kPacks = kHead / kFeatures / 4;  // of a lane
    const int64_t blocks = args.heads + 2 * args.kv_heads;
    const int feature = kFeatures * (lane() % 4);
    Features<T> raw[2][kPacks];
    const float* angles[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t row_of_query = row(half);
      const T* from = static_cast<const T*>(args.qkv) + feature +
                      ((int64_t{blockIdx.z} * args.rows + row_of_query) * blocks + head(half)) * kHead;
#pragma unroll
      for (int i = 0; i < kPacks; ++i) raw[half][i] = Features<T>::load(from + 4 * kFeatures * i);
      angles[half] = rotary_row(args, blockIdx.z, row_of_query) + feature;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        const auto angle = load_pack<float, kFeatures>(angles[half] + 4 * kFeatures * i);
        auto features = turned(raw[half][i], angle);
        transpose(features.word);  // word j: of 8 features from 8 (4 i + j) on
#pragma unroll
        for (int j = 0; j < 4; ++j) query_[2 * i + j / 2][j % 2 * 2 + half] = features.word[j];
      }
    }
  }

  // Adds the keys of a tile, cache indices from `begin` on. `bad`: keys whose values were not finite.
  __device__ void add(const KeyTile<T, kHead>& tile, int begin, unsigned bad) {
    float weights[kTileKeys / 8][4];
    score(tile, weights);
    unsigned seen[2] = {~0U, ~0U};
    if (begin + kTileKeys > span_.length) {
      for (int half = 0; half < 2; ++half) seen[half] = visible_keys(args_, span_, row(half), begin);
      hide(seen, weights);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      weigh(half, weights);
      if ((seen[half] & bad) != 0) total_[half] = minus_infinity() - minus_infinity();
    }
    sum_values(tile, weights);
  }

  // Writes the results of the span.
  __device__ void store(const SpanResults& results) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float total = total_[half];
      for (int step = 1; step < 4; step *= 2) total = __fadd_rn(total, __shfl_xor_sync(~0U, total, step));
      if (query(half) >= pass_.queries) continue;
      const int64_t local = int64_t{blockIdx.z} * pass_.count + row(half) - pass_.first;
      const int64_t item = (local * args_.heads + head(half)) * pass_.splits + blockIdx.x;
      if (slice() == 0 && lane() % 4 == 0) results.totals[item] = {maximum_[half], total};
      float* sums = results.sums + item * kHead + 8 * kColumns * slice() + 2 * (lane() % 4);
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        store_pack(sums + 8 * n, Pack<float, 2>{{sum_[n][2 * half], sum_[n][2 * half + 1]}});
      }
    }
  }

 private:
  static constexpr int kColumns = kHead / 8 / kSlices;  // 8 features each

  __device__ static int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }
  __device__ static int slice() {
    return static_cast<int>(threadIdx.x) / 32 % kSlices;
  }
  __device__ static int query(int half) {
    return static_cast<int>(threadIdx.x) / 32 / kSlices * kTileQueries + lane() / 4 + 8 * half;
  }
  // The last query stands in for those past the end.
  __device__ int real_query(int half) const {
    return min(query(half), pass_.queries - 1);
  }
  __device__ int row(int half) const {
    return pass_.first + real_query(half) / pass_.group;
  }
  __device__ int head(int half) const {
    return static_cast<int>(blockIdx.y) * pass_.group + real_query(half) % pass_.group;
  }

  // scores[j][2 half + i]: query times key 8 j + 2 t + i, in units of log 2.
  __device__ void score(const KeyTile<T, kHead>& tile, float (&scores)[kTileKeys / 8][4]) const {
    const float scale = __fmul_rn(args_.scale, 1.44269504F);
#pragma unroll
    for (int j = 0; j < kTileKeys / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[j][i] = 0.0F;
#pragma unroll
      for (int k = 0; k < kHead / 16; k += 2) {
        uint32_t keys[4];
        load_matrices(keys, tile.keys + tile.at(8 * j + lane() % 8, 2 * k, lane() / 8));
        multiply_add(scores[j], query_[k], keys[0], keys[1], T{});
        multiply_add(scores[j], query_[k + 1], keys[2], keys[3], T{});
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) scores[j][i] = __fmul_rn(scores[j][i], scale);
    }
  }

  __device__ static void hide(const unsigned (&seen)[2], float (&scores)[kTileKeys / 8][4]) {
#pragma unroll
    for (int j = 0; j < kTileKeys / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = 8 * j + 2 * (lane() % 4) + i % 2;
        if ((seen[i / 2] >> key & 1U) == 0) scores[j][i] = minus_infinity();
      }
    }
  }

  // Scores become weights 2^(score - maximum); what was summed so far goes on the new scale.
  __device__ void weigh(int half, float (&scores)[kTileKeys / 8][4]) {
    float maximum = maximum_[half];
#pragma unroll
    for (int j = 0; j < kTileKeys / 8; ++j) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) maximum = fmaxf(maximum, scores[j][i]);
    }
    for (int step = 1; step < 4; step *= 2) maximum = fmaxf(maximum, __shfl_xor_sync(~0U, maximum, step));
    const float base = maximum > minus_infinity() ? maximum : 0.0F;
    const float shrink = exp2_approximate(__fsub_rn(maximum_[half], base));
    float total = __fmul_rn(total_[half], shrink);
#pragma unroll
    for (int j = 0; j < kTileKeys / 8; ++j) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        scores[j][i] = exp2_approximate(__fsub_rn(scores[j][i], base));
        total = __fadd_rn(total, scores[j][i]);
      }
    }
    maximum_[half] = maximum;
    total_[half] = total;
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      for (int i = 2 * half; i < 2 * half + 2; ++i) sum_[n][i] = __fmul_rn(sum_[n][i], shrink);
    }
  }

  __device__ void sum_values(const KeyTile<T, kHead>& tile, const float (&weights)[kTileKeys / 8][4]) {
#pragma unroll
    for (int k = 0; k < kTileKeys / 16; ++k) {
      uint32_t left[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* pair = weights[2 * k + i / 2] + i % 2 * 2;
        left[i] = pair_bits(narrow<T>(pair[0]), narrow<T>(pair[1]));
      }
#pragma unroll
      for (int n = 0; n < kColumns; n += 2) {
        uint32_t values[4];
        load_transposed(values,
                        tile.values + tile.at(16 * k + lane() % 16, kColumns * slice() + n, lane() / 16));
        multiply_add(sum_[n], left, values[0], values[1], T{});
        multiply_add(sum_[n + 1], left, values[2], values[3], T{});
      }
    }
  }

  const AttendArgs& args_;
  const AttendPass& pass_;
  const Span<T>& span_;
  uint32_t query_[kHead / 16][4];
  float sum_[kColumns][4] = {};
  float total_[2] = {0.0F, 0.0F};  // of the lane's own keys
  float maximum_[2] = {minus_infinity(), minus_infinity()};
};

// Grid: spans, key/value heads, sequences; kSpanSharedBytes of dynamic shared memory.
template <class T, int kHead, int kSlices>
__global__ void __launch_bounds__(kMostThreads<kHead, kSlices>, 384 / kMostThreads<kHead, kSlices>)
    attend_span_kernel(AttendArgs args, AttendPass pass, SpanResults results) {
  constexpr int kAhead = KeyTile<T, kHead>::kStages * kTileKeys;
  let_next_kernel_start();
  wait_for_earlier_kernels();
  const Span<T> span = find_span<T>(args, pass);
  if (span.begin >= span.end) return;  // no row sees these keys
  int fetched = span.begin;
  const auto fetch_next = [&] {
    if (fetched < span.end) KeyTile<T, kHead>(fetched).fetch(span, fetched);
    commit_copies();
    fetched += kTileKeys;
  };
  // What was in the cache before is on its way while the new rows are made.
  while (fetched < span.begin + kAhead && fetched + kTileKeys <= span.start) fetch_next();
  append_rows<T, kHead, kSlices>(args, span);
  while (fetched < span.begin + kAhead) fetch_next();
  QueryTile<T, kHead, kSlices> queries(args, pass, span);
  auto* bad = reinterpret_cast<unsigned*>(shared_memory() + kTileBytes);  // a word per tile
  if (threadIdx.x < kMostTiles) bad[threadIdx.x] = 0;
  for (int begin = span.begin; begin < span.end; begin += kTileKeys, ++bad) {
    const KeyTile<T, kHead> tile(begin);
    wait_for_copies<KeyTile<T, kHead>::kStages - 1>();
    __syncthreads();
    if (begin + kTileKeys > span.length) {
      tile.clear_bad(begin, span.length, bad);
      __syncthreads();
    }
    queries.add(tile, begin, *bad);
    if (begin + kAhead < span.end) {
      __syncthreads();
      tile.fetch(span, begin + kAhead);
    }
    commit_copies();
  }
  queries.store(results);
}

}  // namespace
}  // namespace lamplighter
