#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/linear/linear.h"
#include "kernels/linear/tiles.h"

namespace lamplighter {

// Tile kernel over a vector vocabulary (simd_*.h) without bf16 products: bf16 is widened, and the two
// features of a pair are added one after the other. E: float, or uint16_t for bf16. Tiles have at most
// MaxRows rows; tiles of up to PairedRows rows take two blocks at a time. Prefetches: weights are fetched
// early by instructions; for bf16 with AVX2 that saves a fifth to a half of the time, in fp32 it costs some.
template <class Simd, class E, int MaxRows, int PairedRows, bool Prefetches>
struct LanesKernel {
  using Element = E;
  using Vector = typename Simd::F;
  static constexpr int kMaxRows = MaxRows;
  static constexpr int kStreamedRows = 0;
  static constexpr int64_t kLineElements = 16;
  static constexpr int64_t kLineBytes = 64;
  static constexpr int blocks(int rows) { return rows <= PairedRows ? 2 : 1; }
  static int64_t block_bytes(int64_t in) { return in * kLinearBlock * static_cast<int64_t>(sizeof(Element)); }

  static void pack_line(const Element* x, int64_t count, char* line) {
    auto* values = reinterpret_cast<float*>(line);
    for (int64_t i = 0; i < kLineElements; i += Simd::kLanes, values += Simd::kLanes) {
      const int64_t left = count - i;
      const Vector value = left >= Simd::kLanes ? Simd::load(x + i)
                           : left > 0           ? Simd::load(x + i, left)
                                                : Simd::zero();
      Simd::store(values, value);
    }
  }

  template <int R, int N>
  static void compute(const LinearTile& tile) {
    constexpr int features = kPairs ? 2 : 1;
    constexpr int V = N * kVectors;
    Vector sums[R][V];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sums[r][v] = Simd::zero();
    }
    const float* x = reinterpret_cast<const float*>(tile.x);
    const char* weight = tile.weight;
    const int64_t block = tile.block_bytes;
    const int64_t lines = tile.in / kLineElements;
    const int64_t fetched = lines * (kLineElements / features);  // lines of weights
    for (int64_t line = 0; line < lines; ++line, x += kLineElements * R) {
      const int64_t now = line * (kLineElements / features);
      const char* far = tile.ahead(now + kFar, fetched);
      const char* near = tile.ahead(now + kNear, fetched);
      for (int k = 0; k < kLineElements; k += features, weight += 64, far += 64, near += 64) {
#pragma GCC unroll 2
        for (int n = 0; n < N && Prefetches; ++n) {
          __builtin_prefetch(far + n * block, 0, 2);
          __builtin_prefetch(near + n * block, 0, 3);
        }
        step<R, V>(sums, x + k, weight, block);
      }
    }
    const int64_t rest = tile.in % kLineElements;
    for (int64_t k = 0; k + features <= rest; k += features, weight += 64, x += features) {
      step<R, V>(sums, x, weight, block);
    }
    if (kPairs && rest % 2 != 0) {  // the last feature, without a partner
      Vector weights[V];
      for (int v = 0; v < V; ++v) {
        const char* half = weight + v / kVectors * block + v % kVectors * (kVectorBytes / 2);
        weights[v] = Simd::load(reinterpret_cast<const Element*>(half));
      }
      add<R, V>(sums, x, weights);
    }
    store<R, V>(tile, sums);
  }

 private:
  static constexpr bool kPairs = sizeof(Element) == 2;
  static constexpr int kVectors = static_cast<int>(kLinearBlock) / Simd::kLanes;  // of a block
  static constexpr int kVectorBytes = 4 * Simd::kLanes;
  static constexpr int kFar = 96;  // lines of weights between a fetch to the second cache level and their use
  static constexpr int kNear = 32;  // the same to the first level

  // sums += x * weights for one input feature; V vectors across the tile's blocks
  template <int R, int V>
  static inline __attribute__((always_inline)) void add(Vector (&sums)[R][V], const float* x,
                                                        const Vector (&weights)[V]) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vector value = Simd::set(x[kLineElements * r]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sums[r][v] = Simd::fma(weights[v], value, sums[r][v]);
    }
  }

  // 64 bytes of every block: one feature in fp32, a pair in bf16
  template <int R, int V>
  static inline __attribute__((always_inline)) void step(Vector (&sums)[R][V], const float* x,
                                                         const char* weight, int64_t block) {
    Vector weights[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const auto words = Simd::load_words(weight + v / kVectors * block + v % kVectors * kVectorBytes);
      weights[v] = kPairs ? Simd::even(words) : Simd::as_floats(words);
    }
    add<R, V>(sums, x, weights);
    if (!kPairs) return;
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      weights[v] = Simd::odd(Simd::load_words(weight + v / kVectors * block + v % kVectors * kVectorBytes));
    }
    add<R, V>(sums, x + 1, weights);
  }

  template <int R, int V>
  static inline __attribute__((always_inline)) void store(const LinearTile& tile,
                                                          const Vector (&sums)[R][V]) {
    auto* out = static_cast<Element*>(tile.out);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r, out += tile.out_stride) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const int64_t left = tile.out_features - v * Simd::kLanes;
        if (left >= Simd::kLanes) {
          Simd::store(out + v * Simd::kLanes, sums[r][v]);
        } else if (left > 0) {
          Simd::store(out + v * Simd::kLanes, sums[r][v], left);
        }
      }
    }
  }
};

}  // namespace lamplighter
