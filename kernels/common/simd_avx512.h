#pragma once

// GCC 12 takes the undefined vectors inside its own intrinsics for mistakes (its bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstdint>

namespace lamplighter {
// Internal linkage: code compiled for this instruction set must not be merged with other files' copies.
namespace {

// The vector vocabulary of the elementwise and attention kernels, 16 lanes. T = float or uint16_t (bf16
// bits). "Words" are 32-bit lanes: one float or a pair of bf16 features (even one in the low half).
struct Avx512 {
  using F = __m512;
  using W = __m512i;
  static constexpr int kLanes = 16;
  static constexpr int kQueries = 4;        // queries whose sums fit in registers beside the keys or values
  static constexpr bool kJoinsRows = true;  // has join_low() and its kin

  static __mmask16 first(int64_t n) { return static_cast<__mmask16>((1U << n) - 1U); }

  static F zero() { return _mm512_setzero_ps(); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }  // b when either is NaN
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F round(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F times_power_of_2(F a, F n) { return _mm512_scalef_ps(a, n); }
  static F keep_above(F a, F x, F bound) {  // a where x > bound or x is NaN, else 0
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, bound, _CMP_NLE_UQ), a);
  }
  static float sum(F a) { return _mm512_reduce_add_ps(a); }
  static float largest(F a) { return _mm512_reduce_max_ps(a); }

  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static F load(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static F load(const uint16_t* p) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static F load(const uint16_t* p, int64_t n) { return widen(_mm256_maskz_loadu_epi16(first(n), p)); }
  static void store(float* p, F a) { _mm512_storeu_ps(p, a); }
  static void store(float* p, F a, int64_t n) { _mm512_mask_storeu_ps(p, first(n), a); }
  static void store(uint16_t* p, F a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(a)); }
  static void store(uint16_t* p, F a, int64_t n) { _mm256_mask_storeu_epi16(p, first(n), narrow(a)); }
  static F rounded(F a, float) { return a; }
  static F rounded(F a, uint16_t) { return widen(narrow(a)); }

  static W load_words(const void* p) { return _mm512_loadu_si512(p); }
  static W load_words(const void* p, int64_t n) { return _mm512_maskz_loadu_epi32(first(n), p); }
  static void store_words(void* p, W a) { _mm512_storeu_si512(p, a); }
  static void store_words(void* p, W a, int64_t n) { _mm512_mask_storeu_epi32(p, first(n), a); }
  static W set_word(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static F as_floats(W a) { return _mm512_castsi512_ps(a); }
  static W as_words(F a) { return _mm512_castps_si512(a); }
  static F even(W pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
  static F odd(W pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000U))));
  }
  static W pairs(F even, F odd) {
    const __m512i low = _mm512_cvtepu16_epi32(narrow(even));
    const __m512i high = _mm512_cvtepu16_epi32(narrow(odd));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
  }
  // sum + products of the words of a and b, one after the other. For bf16 pairs the high half comes first,
  // each product added with one rounding: two steps with a zero in one half give the bits of one step.
  static F dot(F sum, W a, W b, float) { return fma(as_floats(a), as_floats(b), sum); }
  static F dot(F sum, W a, W b, uint16_t) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  // sum + products of four unsigned bytes of every lane and four signed ones, modulo 2^32 (Avx2 has no such
  // instruction: kernels/linear/avx2.h); the halves of bytes as bytes; int32 lanes as floats; floats that are
  // integers of -128 to 127 as bytes.
  static W add_bytes(W sum, W weights, W value) { return _mm512_dpbusd_epi32(sum, weights, value); }
  static W low_halves(W a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
  static W high_halves(W a) { return low_halves(_mm512_srli_epi16(a, 4)); }
  static F to_floats(W a) { return _mm512_cvtepi32_ps(a); }
  static void store_bytes(int8_t* p, F a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a)));
  }
  // bf16 features of two rows -> pairs with `first` in the high half; unjoin() restores the order of the
  // features.
  static W join_low(W first, W second) { return _mm512_unpacklo_epi16(second, first); }
  static W join_high(W first, W second) { return _mm512_unpackhi_epi16(second, first); }
  static W unjoin(F low, F high) {
    const W order = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    return _mm512_permutex2var_epi64(_mm512_castsi256_si512(narrow(low)), order,
                                     _mm512_castsi256_si512(narrow(high)));
  }
  // bf16 with neighbours swapped: element i at p[i ^ 1].
  static void store_swapped(uint16_t* p, F a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_rol_epi32(narrow(a), 16));
  }

  // Lanes (2i, 2i+1) hold x and (cos, sin): x0 cos - x1 sin, x1 cos + x0 sin, each product rounded.
  static F turn(F x, F cos_sin) {
    const F crossed = _mm512_mul_ps(_mm512_permute_ps(x, 0xb1), _mm512_movehdup_ps(cos_sin));
    const F straight = _mm512_mul_ps(x, _mm512_moveldup_ps(cos_sin));
    return _mm512_fmaddsub_ps(straight, _mm512_set1_ps(1.0F), crossed);
  }

  // Lane i: the sum of a[i]'s lanes, in an order that is the same for every i.
  static F sums(const F* a) {
    F half[8];  // of rows i and i + 8
#pragma GCC unroll 16
    for (int i = 0; i < 8; ++i) {
      const F low = _mm512_mask_blend_ps(0xff00, a[i], a[i + 8]);
      half[i] = _mm512_add_ps(low, _mm512_shuffle_f32x4(a[i], a[i + 8], 0x4e));
    }
    const __m512i across = _mm512_setr_epi64(2, 3, 8, 9, 6, 7, 12, 13);
    F quarter[4];  // of rows i, i + 4, i + 8, i + 12
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      const F low = _mm512_mask_blend_ps(0xf0f0, half[i], half[i + 4]);
      const __m512d high =
          _mm512_permutex2var_pd(_mm512_castps_pd(half[i]), across, _mm512_castps_pd(half[i + 4]));
      quarter[i] = _mm512_add_ps(low, _mm512_castpd_ps(high));
    }
    F eighth[2];
#pragma GCC unroll 16
    for (int i = 0; i < 2; ++i) {
      const F low = _mm512_mask_blend_ps(0xcccc, quarter[2 * i], quarter[2 * i + 1]);
      eighth[i] = _mm512_add_ps(low, _mm512_shuffle_ps(quarter[2 * i], quarter[2 * i + 1], 0x4e));
    }
    return _mm512_add_ps(_mm512_shuffle_ps(eighth[0], eighth[1], 0x88),
                         _mm512_shuffle_ps(eighth[0], eighth[1], 0xdd));
  }

 private:
  static F widen(__m256i a) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(a), 16));
  }
  static __m256i narrow(F a) {
    return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a));
  }
};

}  // namespace
}  // namespace lamplighter
