#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/linear/linear.h"
#include "kernels/linear/tiles.h"

// Products of int8 weights and int16 activations, over the vector vocabulary (simd_*.h).
namespace lamplighter {
namespace {

constexpr uint32_t kBFloat16Infinity = 0x7f80;

// The integer nearest to x, ties to even, for |x| < 2^15: adding 1.5 * 2^23 leaves it in the low bits.
inline int nearest_integer(float x) {
  const float shifted = x + 12582912.0F;
  uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof(bits));
  return static_cast<int16_t>(static_cast<uint16_t>(bits));
}

inline float bfloat16_value(uint32_t bits) {
  bits <<= 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rounds bf16 rows to multiples of their scale. Loops without branches: the compiler's vectors give the bits
// of single steps.
inline void quantise_rows(const uint16_t* x, int64_t rows, int64_t in, int64_t padded, int16_t* to,
                          float* scales) {
  const auto most = static_cast<float>(linear_int8_most(padded));
  for (int64_t row = 0; row < rows; ++row, x += in, to += padded) {
    uint32_t top = 0;
    for (int64_t i = 0; i < in; ++i) {
      const uint32_t magnitude = x[i] & 0x7fffU;
      top = magnitude > top ? magnitude : top;
    }
    const float largest = bfloat16_value(top);
    const float range = largest > kLinearInt8Smallest ? largest : kLinearInt8Smallest;
    const bool finite = top < kBFloat16Infinity;
    const float factor = finite ? most / range : 0.0F;
    scales[row] = finite ? range / most : std::numeric_limits<float>::quiet_NaN();
    for (int64_t i = 0; i < in; ++i) {
      const float value = finite ? bfloat16_value(x[i]) : 0.0F;
      to[i] = static_cast<int16_t>(nearest_integer(value * factor));
    }
    for (int64_t i = in; i < padded; ++i) to[i] = 0;
  }
}

// Tiles have at most MaxRows rows; blocks(rows) of the panel come from Panel.
template <class Simd, int MaxRows, class Panel>
struct Int8Kernel {
  using Element = uint16_t;  // int16 in x, bf16 in out
  static constexpr int kMaxRows = MaxRows;
  static constexpr int64_t kLineElements = 32;
  static constexpr int blocks(int rows) { return Panel::blocks(rows); }
  static int64_t block_bytes(int64_t in) { return kLinearBlock * (in + kLinearInt8Header); }

  static void pack_line(const Element* x, int64_t count, char* line) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(Element);
    std::memcpy(line, x, bytes);
    std::memset(line + bytes, 0, 64 - bytes);
  }

  template <int R, int N>
  static void compute(const LinearTile& tile) {
    constexpr int V = N * kVectors;
    Words sums[R][V];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sums[r][v] = Simd::set_word(0);
    }
    const int64_t block = tile.block_bytes;
    const int64_t lines = tile.in / kLineElements;
    const int64_t fetched = lines * (kLineElements / 4);  // lines of weights
    const char* weight = tile.weight + kHeaderBytes;
    const char* x = tile.x;
    for (int64_t line = 0; line < lines; ++line, x += 64 * R) {
      const int64_t now = line * (kLineElements / 4);
#pragma GCC unroll 8
      for (int k = 0; k < kLineElements / 4; ++k, weight += 2 * kStepBytes) {
        const char* far = tile.ahead(now + k + kFar, fetched);
        const char* near = tile.ahead(now + k + kNear, fetched);
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) {
          __builtin_prefetch(far + n * block, 0, 2);
          __builtin_prefetch(near + n * block, 0, 3);
        }
        step<R, V>(sums, x + 8 * k, weight, block);
        step<R, V>(sums, x + 8 * k + 4, weight + kStepBytes, block);
      }
    }
    for (int64_t k = 0; k < tile.in % kLineElements; k += 2, x += 4, weight += kStepBytes) {
      step<R, V>(sums, x, weight, block);
    }
    store<R, V>(tile, sums);
  }

 private:
  using Numbers = typename Simd::F;
  using Words = typename Simd::W;
  static constexpr int kVectors = static_cast<int>(kLinearBlock) / Simd::kLanes;  // of a block
  static constexpr int kStepBytes = 2 * kLinearBlock;                             // of a block: two features
  static constexpr int kHeaderBytes = kLinearInt8Header * kLinearBlock;
  static constexpr int kFar = 40;  // lines of weights between a fetch to the second cache level and their use
  static constexpr int kNear = 8;  // the same to the first level

  // sums += the products of two features; V vectors across the tile's blocks
  template <int R, int V>
  static inline __attribute__((always_inline)) void step(Words (&sums)[R][V], const char* x,
                                                         const char* weight, int64_t block) {
    Words weights[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      weights[v] = Simd::widen_bytes(weight + v / kVectors * block + v % kVectors * (kStepBytes / kVectors));
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      uint32_t pair;
      std::memcpy(&pair, x + 64 * r, sizeof(pair));
      const Words value = Simd::set_word(pair);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) sums[r][v] = Simd::add_pairs(sums[r][v], weights[v], value);
    }
  }

  template <int R, int V>
  static inline __attribute__((always_inline)) void store(const LinearTile& tile, const Words (&sums)[R][V]) {
    auto* out = static_cast<Element*>(tile.out);
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const char* scales = tile.weight + v / kVectors * tile.block_bytes + v % kVectors * 4 * Simd::kLanes;
      const Numbers scale = Simd::as_floats(Simd::load_words(scales));
      const int64_t left = tile.out_features - v * Simd::kLanes;
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const Numbers scaled = Simd::mul(Simd::to_floats(sums[r][v]), scale);
        const Numbers result = Simd::mul(scaled, Simd::set(tile.row_scales[r]));
        Element* to = out + r * tile.out_stride + v * Simd::kLanes;
        if (left >= Simd::kLanes) {
          Simd::store(to, result);
        } else if (left > 0) {
          Simd::store(to, result, left);
        }
      }
    }
  }
};

}  // namespace
}  // namespace lamplighter
