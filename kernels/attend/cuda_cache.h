#pragma once

#include "kernels/attend/cuda_rows.h"
#include "kernels/attend/rounded_cache.h"

// How cuda_general.h reads and writes the cache of one sequence and key/value head.
namespace lamplighter {
namespace {

constexpr int kLargestHead = 256;  // largest head_dim

// A head's features in the registers of a warp: pair i is the one at lane i % 32, position i / 32.
template <class T>
struct WarpPairs {
  Rotated<T> pair[kLargestHead / 64];

  // step(pair, feature) for the pairs of this lane.
  template <class Step>
  __device__ void each(int64_t head_dim, const Step& step) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kLargestHead / 64; ++i) {
      const int feature = 2 * (lane + 32 * i);
      if (feature < head_dim) step(pair[i], feature);
    }
  }
};

// Rows of T.
template <class T>
struct PlainCache {
  using Element = T;
  T* rows;  // [max_length, head_dim]
  int64_t head_dim;

  struct Row {
    const T* features;

    __device__ float at(int d) const { return widen(features[d]); }

    template <int kPack>
    __device__ void load(int d, float (&to)[kPack]) const {
      const auto pack = load_pack<T, kPack>(features + d);
#pragma unroll
      for (int j = 0; j < kPack; ++j) to[j] = widen(pack.element[j]);
    }
  };

  __device__ PlainCache(const AttendArgs& args, void* planes, int64_t item)
      : rows(static_cast<T*>(planes) + item * args.max_length * args.head_dim), head_dim(args.head_dim) {}

  __device__ Row row(int64_t index) const {
    return {rows + index * head_dim};
  }

  __device__ void store(int64_t index, WarpPairs<T>& pairs) const {
    T* to = rows + index * head_dim;
    pairs.each(head_dim, [&](const Rotated<T>& pair, int d) {
      to[d] = pair.first;
      to[d + 1] = pair.second;
    });
  }
};

// Rows of rounded_cache.h, read as the T that they stand for.
template <class T>
struct RoundedCache {
  using Element = T;
  int8_t* rows;  // [max_length, head_dim + kRowScaleBytes]
  int64_t head_dim;

  struct Row {
    const int8_t* integers;
    float scale;

    __device__ float at(int d) const { return rounded<T>(row_feature(integers[d], scale)); }

    // Packs are loaded by fours.
    template <int kPack>
    __device__ void load(int d, float (&to)[kPack]) const {
      constexpr int kLoad = kPack < 4 ? kPack : 4;
#pragma unroll
      for (int j = 0; j < kPack; j += kLoad) {
        const auto pack = load_pack<int8_t, kLoad>(integers + d + j);
#pragma unroll
        for (int i = 0; i < kLoad; ++i) to[j + i] = rounded<T>(row_feature(pack.element[i], scale));
      }
    }
  };

  __device__ RoundedCache(const AttendArgs& args, void* planes, int64_t item)
      : rows(static_cast<int8_t*>(planes) + item * args.max_length * cache_row_bytes(args)),
        head_dim(args.head_dim) {}

  __device__ int8_t* begin(int64_t index) const {
    return rows + index * (head_dim + kRowScaleBytes);
  }

  __device__ Row row(int64_t index) const {
    Row row{begin(index), 0.0F};
    memcpy(&row.scale, row.integers + head_dim, sizeof(row.scale));
    return row;
  }

  __device__ void store(int64_t index, WarpPairs<T>& pairs) const {
    uint32_t largest = 0;
    pairs.each(head_dim, [&](const Rotated<T>& pair, int) {
      largest = max(largest, max(magnitude_bits(widen(pair.first)), magnitude_bits(widen(pair.second))));
    });
    for (int step = 16; step > 0; step /= 2) largest = max(largest, __shfl_xor_sync(~0U, largest, step));
    const float scale = row_scale(largest);
    int8_t* to = begin(index);
    pairs.each(head_dim, [&](const Rotated<T>& pair, int d) {
      to[d] = round_feature(widen(pair.first), scale);
      to[d + 1] = round_feature(widen(pair.second), scale);
    });
    if (threadIdx.x % 32 == 0) memcpy(to + head_dim, &scale, sizeof(scale));
  }
};

}  // namespace
}  // namespace lamplighter
