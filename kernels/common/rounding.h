#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/common/kernel_inline.h"

// How numbers become integers, in the same bits everywhere.
namespace lamplighter {
namespace {

constexpr uint32_t kBFloat16Infinity = 0x7f80;

// The integer nearest to x, ties to even, for |x| < 2^15: adding 1.5 * 2^23 leaves it in the low bits.
LAMPLIGHTER_INLINE int nearest_integer(float x) {
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

// The bits of the bf16 nearest to a finite x, ties to even.
inline uint16_t nearest_bfloat16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

}  // namespace
}  // namespace lamplighter
