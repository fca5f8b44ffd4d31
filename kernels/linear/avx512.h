#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/simd_avx512.h"
#include "kernels/linear/integers.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/tiles.h"

namespace lamplighter {
namespace {

// How weights of a number of bits are read (see run_linear and IntegerKernel). Sums, weights and one value of
// x fit the 32 registers. One block at a time: the memory is the limit, and a short distance to the first
// cache level leaves its queues free for the hardware's own fetches. Several: arithmetic is the limit, and
// lines come to the first level well before use, because what memory delivers late must not stop it.
template <int Bits>
struct Panel {
  static constexpr int kStreamedRows = Bits == 4 ? 4 : 9;
  static constexpr int blocks(int rows) { return Bits < 16 || rows > 9 ? 2 : rows > 6 ? 3 : 4; }
  static constexpr int far(int rows, int n) { return n > 1 ? Bits == 4 ? 128 : 96 : rows > 6 ? 160 : 96; }
  static constexpr int near(int n) { return n > 1 ? 32 : 4; }
};

// What differs between the types: one step is 64 bytes of a block's weights and 4 bytes of a row.
struct Float32Step {
  using Element = float;
  static constexpr int features = 1;
  static __m512 add(__m512 sum, __m512i weight, __m512i x) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(weight), _mm512_castsi512_ps(x), sum);
  }
  static void store(float* out, __mmask16 mask, __m512 sum) { _mm512_mask_storeu_ps(out, mask, sum); }
};

struct BFloat16Step {
  using Element = uint16_t;
  static constexpr int features = 2;
  static __m512 add(__m512 sum, __m512i weight, __m512i x) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(weight), reinterpret_cast<__m512bh>(x));
  }
  static void store(uint16_t* out, __mmask16 mask, __m512 sum) {
    _mm256_mask_storeu_epi16(out, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sum)));
  }
};

template <class Step, int R, int N>
inline __attribute__((always_inline)) void step(__m512 (&sums)[R][N], const char* x,
                                                const __m512i (&weights)[N]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const __m512i value = _mm512_set1_epi32(*reinterpret_cast<const int*>(x + 64 * r));
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sums[r][n] = Step::add(sums[r][n], weights[n], value);
  }
}

template <class Step, class Panel, int R, int N>
void compute_tile(const LinearTile& tile) {
  __m512 sums[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sums[r][n] = _mm512_setzero_ps();
  }
  const int64_t steps = tile.in / Step::features;
  const int64_t lines = steps / 16;
  const char* x = tile.x;
  const char* weight = tile.weight;
  const int64_t block = tile.block_bytes;
  __m512i weights[N];
  for (int64_t line = 0; line < lines; ++line, x += 64 * R) {
    for (int quarter = 0; quarter < 4; ++quarter, weight += 256) {
      const int64_t now = 16 * line + 4 * quarter;
      const char* far = tile.fetched(now, Panel::far(R, N), 16 * lines);
      const char* near = tile.ahead(now + Panel::near(N), 16 * lines);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) {
          weights[n] = _mm512_loadu_si512(weight + n * block + 64 * k);
          _mm_prefetch(far + n * block + 64 * k, _MM_HINT_T1);
          _mm_prefetch(near + n * block + 64 * k, _MM_HINT_T0);
        }
        step<Step, R, N>(sums, x + 16 * quarter + 4 * k, weights);
      }
    }
  }
  for (int64_t k = lines * 16; k < steps; ++k, weight += 64, x += 4) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) weights[n] = _mm512_loadu_si512(weight + n * block);
    step<Step, R, N>(sums, x, weights);
  }
  if (Step::features == 2 && tile.in % 2 != 0) {  // the last feature, paired with zeros
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      weights[n] = _mm512_maskz_cvtepu16_epi32(
          0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weight + n * block)));
    }
    step<Step, R, N>(sums, x, weights);
  }
  auto* out = static_cast<typename Step::Element*>(tile.out);
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
    const int64_t features = tile.out_features - n * kLinearBlock;
    const auto mask = static_cast<__mmask16>(features >= kLinearBlock ? 0xffff : (1 << features) - 1);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) Step::store(out + r * tile.out_stride + n * kLinearBlock, mask, sums[r][n]);
  }
}

template <class Step, class Panel>
struct WideKernel {
  using Element = typename Step::Element;
  static constexpr int kMaxRows = 14;
  static constexpr int64_t kLineElements = 16 * Step::features;
  static constexpr int64_t kLineBytes = 64;

  static constexpr int kStreamedRows = Panel::kStreamedRows;
  static constexpr int blocks(int rows) { return Panel::blocks(rows); }
  static int64_t block_bytes(int64_t in) { return in * kLinearBlock * static_cast<int64_t>(sizeof(Element)); }

  static void pack_line(const Element* x, int64_t count, char* line) {
    if (sizeof(Element) == 4) {
      const auto mask = static_cast<__mmask16>((1u << count) - 1);
      _mm512_store_si512(line, _mm512_maskz_loadu_epi32(mask, x));
    } else {
      const auto mask = static_cast<__mmask32>((uint64_t{1} << count) - 1);
      _mm512_store_si512(line, _mm512_maskz_loadu_epi16(mask, x));
    }
  }

  template <int R, int N>
  static void compute(const LinearTile& tile) {
    compute_tile<Step, Panel, R, N>(tile);
  }
};

template <class Element>
using FloatKernel = WideKernel<std::conditional_t<sizeof(Element) == 4, Float32Step, BFloat16Step>,
                               Panel<8 * sizeof(Element)>>;

template <class Weights>
using Integers = IntegerKernel<ByteProducts<Avx512, Weights>, 12, Panel<Weights::kBits>>;

}  // namespace
}  // namespace lamplighter
