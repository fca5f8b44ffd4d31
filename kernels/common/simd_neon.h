#pragma once

#include <arm_neon.h>

#include "kernels/common/simd_portable.h"

namespace lamplighter {
namespace {

// The vector vocabulary of 64-bit Arm: the portable one, whose vectors compilers turn into the same
// instructions, and what C++ has no words for.
struct Neon : Portable {
  static F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
  static F round(F a) { return vrndnq_f32(a); }

  static F dot(F sum, W a, W b, float) { return fma(as_floats(a), as_floats(b), sum); }
  static F dot(F sum, W a, W b, uint16_t) { return fma(even(a), even(b), fma(odd(a), odd(b), sum)); }

  // Here the bytes of the weights have signs, too.
  static W add_bytes(W sum, W weights, W value) {
    return vreinterpretq_u32_s32(
        vdotq_s32(vreinterpretq_s32_u32(sum), vreinterpretq_s8_u32(weights), vreinterpretq_s8_u32(value)));
  }
  static void store_bytes(int8_t* p, F a) {
    const int16x4_t halves = vmovn_s32(vcvtq_s32_f32(a));
    const int8x8_t bytes = vmovn_s16(vcombine_s16(halves, halves));
    vst1_lane_s32(reinterpret_cast<int32_t*>(p), vreinterpret_s32_s8(bytes), 0);
  }
};

}  // namespace
}  // namespace lamplighter
