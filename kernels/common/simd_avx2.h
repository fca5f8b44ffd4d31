#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace lamplighter {
// Internal linkage: code compiled for this instruction set must not be merged with other files' copies.
namespace {

// The vector vocabulary of the elementwise and attention kernels, 8 lanes; meanings as in simd_avx512.h.
struct Avx2 {
  using F = __m256;
  using W = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kQueries = 2;
  static constexpr bool kJoinsRows = false;

  static __m256i first(int64_t n) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
  }

  static F zero() { return _mm256_setzero_ps(); }
  static F set(float x) { return _mm256_set1_ps(x); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F round(F a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F times_power_of_2(F a, F n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }
  static F keep_above(F a, F x, F bound) { return _mm256_and_ps(a, _mm256_cmp_ps(x, bound, _CMP_NLE_UQ)); }
  static float sum(F a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  static float largest(F a) {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
  }

  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static F load(const float* p, int64_t n) { return _mm256_maskload_ps(p, first(n)); }
  static F load(const uint16_t* p) { return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static F load(const uint16_t* p, int64_t n) {
    uint16_t buffer[8] = {};
    std::memcpy(buffer, p, static_cast<size_t>(n) * sizeof(uint16_t));
    return load(buffer);
  }
  static void store(float* p, F a) { _mm256_storeu_ps(p, a); }
  static void store(float* p, F a, int64_t n) { _mm256_maskstore_ps(p, first(n), a); }
  static void store(uint16_t* p, F a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(a)); }
  static void store(uint16_t* p, F a, int64_t n) {
    uint16_t buffer[8];
    store(buffer, a);
    std::memcpy(p, buffer, static_cast<size_t>(n) * sizeof(uint16_t));
  }
  static F rounded(F a, float) { return a; }
  static F rounded(F a, uint16_t) { return _mm256_castsi256_ps(_mm256_slli_epi32(rounded_high(a), 16)); }

  static W load_words(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static W load_words(const void* p, int64_t n) {
    return _mm256_maskload_epi32(static_cast<const int*>(p), first(n));
  }
  static void store_words(void* p, W a) { _mm256_storeu_si256(static_cast<__m256i*>(p), a); }
  static void store_words(void* p, W a, int64_t n) {
    _mm256_maskstore_epi32(static_cast<int*>(p), first(n), a);
  }
  static W set_word(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  static F as_floats(W a) { return _mm256_castsi256_ps(a); }
  static W as_words(F a) { return _mm256_castps_si256(a); }
  static F even(W pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
  static F odd(W pairs) {
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int>(0xffff0000U))));
  }
  static W pairs(F even, F odd) {
    return _mm256_or_si256(rounded_high(even), _mm256_slli_epi32(rounded_high(odd), 16));
  }

  static F dot(F sum, W a, W b, float) { return fma(as_floats(a), as_floats(b), sum); }
  static F dot(F sum, W a, W b, uint16_t) { return fma(even(a), even(b), fma(odd(a), odd(b), sum)); }

  static W low_halves(W a) { return _mm256_and_si256(a, _mm256_set1_epi8(15)); }
  static W high_halves(W a) { return low_halves(_mm256_srli_epi16(a, 4)); }
  static F to_floats(W a) { return _mm256_cvtepi32_ps(a); }
  static void store_bytes(int8_t* p, F a) {
    const W words = _mm256_cvtps_epi32(a);
    const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(halves, halves));
  }

  static F turn(F x, F cos_sin) {
    const F crossed = _mm256_mul_ps(_mm256_permute_ps(x, 0xb1), _mm256_movehdup_ps(cos_sin));
    return _mm256_addsub_ps(_mm256_mul_ps(x, _mm256_moveldup_ps(cos_sin)), crossed);
  }

  static F sums(const F* a) {
    F half[4];  // of rows i and i + 4
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      const F low = _mm256_blend_ps(a[i], a[i + 4], 0xf0);
      half[i] = _mm256_add_ps(low, _mm256_permute2f128_ps(a[i], a[i + 4], 0x21));
    }
    F quarter[2];
#pragma GCC unroll 16
    for (int i = 0; i < 2; ++i) {
      const F low = _mm256_blend_ps(half[2 * i], half[2 * i + 1], 0xcc);
      quarter[i] = _mm256_add_ps(low, _mm256_shuffle_ps(half[2 * i], half[2 * i + 1], 0x4e));
    }
    return _mm256_add_ps(_mm256_shuffle_ps(quarter[0], quarter[1], 0x88),
                         _mm256_shuffle_ps(quarter[0], quarter[1], 0xdd));
  }

 private:
  static F widen(__m128i a) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(a), 16));
  }
  // The bf16 nearest to each lane (ties to even, NaN kept) in the low half of the lane.
  static W rounded_high(F a) {
    const W bits = _mm256_castps_si256(a);
    const W low = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const W bias = _mm256_add_epi32(low, _mm256_set1_epi32(0x7fff));
    const W nearest = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const W quiet = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
    return _mm256_blendv_epi8(nearest, quiet, _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
  }
  static __m128i narrow(F a) {
    const W words = rounded_high(a);
    return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  }
};

}  // namespace
}  // namespace lamplighter
