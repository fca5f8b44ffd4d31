#pragma once

#include <cstdint>

#include "kernels/common/kernel_inline.h"

// Number formats and functions that CPU and CUDA kernels share.
namespace lamplighter {

struct BFloat16Bits {
  uint16_t bits;
};

struct Float16Bits {
  uint16_t bits;
};

LAMPLIGHTER_INLINE uint32_t float_bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

LAMPLIGHTER_INLINE float bits_float(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// condition ? yes : no by masks: keeps loops free of branches, which compilers do not vectorise.
LAMPLIGHTER_INLINE float choose(bool condition, float yes, float no) {
  const uint32_t mask = 0U - static_cast<uint32_t>(condition);
  return bits_float((float_bits(yes) & mask) | (float_bits(no) & ~mask));
}

LAMPLIGHTER_INLINE float widen(float value) {
  return value;
}

LAMPLIGHTER_INLINE float widen(BFloat16Bits value) {
  return bits_float(uint32_t{value.bits} << 16);
}

LAMPLIGHTER_INLINE float widen(Float16Bits value) {
  const uint32_t sign = (uint32_t{value.bits} & 0x8000U) << 16;
  const uint32_t magnitude = uint32_t{value.bits} & 0x7FFFU;
  const uint32_t finite = float_bits(bits_float(magnitude << 13) * 0x1p112F);
  return bits_float(sign | (magnitude < 0x7C00U ? finite : 0x7F800000U | (magnitude << 13)));
}

// Place of the lowest bit that is set, -1 for none.
LAMPLIGHTER_INLINE int lowest_bit(uint64_t bits) {
#if defined(__CUDACC__)
  return __ffsll(static_cast<long long>(bits)) - 1;
#else
  return bits == 0 ? -1 : __builtin_ctzll(bits);
#endif
}

LAMPLIGHTER_INLINE uint64_t double_bits(double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

LAMPLIGHTER_INLINE double bits_double(uint64_t bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// a * b, never fused with an addition: the same bits on every device.
LAMPLIGHTER_INLINE double product(double a, double b) {
#if defined(__CUDACC__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

// 0 <= value < 2^52, by bits alone: not every instruction set converts 64-bit integers.
LAMPLIGHTER_INLINE double small_integer(uint64_t value) {
  return bits_double(0x4330000000000000U | value) - 0x1p52;
}

// Natural logarithm of a normal number > 0, relative error below 1e-15 also near 1. The same bits on every
// CPU and on CUDA. x = 2^k * (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) = 2 artanh(f / (2 + f)).
LAMPLIGHTER_INLINE double natural_log(double x) {
  constexpr uint64_t kHalfRoot = 0x3FE6A09E00000000U;  // bits of sqrt(1/2)
  constexpr uint64_t kOne = 0x3FF0000000000000U;
  const uint64_t shifted = double_bits(x) + (kOne - kHalfRoot);
  const double k = small_integer(shifted >> 52) - 1023.0;
  const double f = bits_double((shifted & 0x000FFFFFFFFFFFFFU) + kHalfRoot) - 1.0;
  const double s = f / (f + 2.0);
  const double z = product(s, s);
  double p = 1.0 / 19.0;  // artanh(s) / s = 1 + z / 3 + z^2 / 5 + ...
  p = product(p, z) + 1.0 / 17.0;
  p = product(p, z) + 1.0 / 15.0;
  p = product(p, z) + 1.0 / 13.0;
  p = product(p, z) + 1.0 / 11.0;
  p = product(p, z) + 1.0 / 9.0;
  p = product(p, z) + 1.0 / 7.0;
  p = product(p, z) + 1.0 / 5.0;
  p = product(p, z) + 1.0 / 3.0;
  p = product(p, z) + 1.0;
  return product(k, 0.693147180559945309417) + product(s + s, p);
}

// e^x for x <= 0 within 2 units in the last place; 0 where the result would be subnormal. The same bits on
// every CPU: no library call, no fused multiply-add.
LAMPLIGHTER_INLINE float exp_negative(float x) {
  constexpr float kSmallest = -87.33F;  // e^x stays above 2^-126
  constexpr float kToInteger = 0x1.8p23F;
  const float clamped = choose(x > kSmallest, x, kSmallest);
  const float shifted = clamped * 1.44269504F + kToInteger;  // low bits: n = round(x / ln 2)
  const float n = shifted - kToInteger;
  const float r = (clamped - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;  // ln 2 in two parts
  // Taylor coefficients up to r^7; |r| <= ln(2) / 2.
  float p = 1.98412698e-4F;
  p = p * r + 1.38888889e-3F;
  p = p * r + 8.33333333e-3F;
  p = p * r + 4.16666667e-2F;
  p = p * r + 1.66666667e-1F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const float result = bits_float(float_bits(p) + (float_bits(shifted) << 23));
  return choose(x > kSmallest, result, 0.0F);
}

}  // namespace lamplighter
