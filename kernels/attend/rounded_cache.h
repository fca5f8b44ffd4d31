#pragma once

#include <cstdint>

#include "kernels/attend/attend.h"
#include "kernels/common/kernel_inline.h"
#include "kernels/common/numbers.h"
#include "kernels/common/rounding.h"

// Rows of a rounded cache: head_dim integers of 8 bits, then their scale in fp32. A feature is integer *
// scale in fp32, rounded to the dtype of the operator; the scale is the largest magnitude of the row over
// 127. A row with a number that is not finite is NaN throughout.
namespace lamplighter {

constexpr int64_t kRowScaleBytes = 4;

namespace {

LAMPLIGHTER_INLINE int64_t cache_row_bytes(const AttendArgs& args) {
  if (args.rounded_cache) return args.head_dim + kRowScaleBytes;
  return args.head_dim * (args.type == ElementType::kFloat32 ? 4 : 2);
}

// Without its sign a number's bits rise with its magnitude; infinity and NaN are above all others.
LAMPLIGHTER_INLINE uint32_t magnitude_bits(float x) {
  return float_bits(x) & 0x7fffffffU;
}

// The scale of a row, of which `largest` is the largest magnitude_bits(); 0 where all of it vanishes.
LAMPLIGHTER_INLINE float row_scale(uint32_t largest) {
  constexpr uint32_t kInfinity = 0x7f800000, kNan = 0x7fc00000;
  constexpr float kLeast = 1.17549435e-38F;  // below it the quotients of round_feature() would lose bits
  const float scale = bits_float(largest < kInfinity ? largest : kNan) / 127.0F;
  return scale < kLeast ? 0.0F : scale;
}

LAMPLIGHTER_INLINE int8_t round_feature(float x, float scale) {
  if (!(scale > 0.0F)) return 0;  // 0 or NaN
  return static_cast<int8_t>(nearest_integer(x / scale));
}

LAMPLIGHTER_INLINE float row_feature(int8_t integer, float scale) {
  return static_cast<float>(integer) * scale;
}

}  // namespace
}  // namespace lamplighter
