#pragma once

#include <cstdint>

#include "kernels/kernel_inline.h"

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
