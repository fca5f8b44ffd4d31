#pragma once

#include "base/philox.h"
#include "kernels/common/kernel_inline.h"

namespace lamplighter::step {

// What the operator uniforms gives, below 1 as verify_tree takes it.
LAMPLIGHTER_INLINE float uniform_of(int64_t seed, int64_t steps, int64_t purpose, int64_t node) {
  constexpr float kLargest = 0x1.fffffep-1F;
  const float uniform = philox_uniform(static_cast<uint64_t>(seed), static_cast<uint32_t>(steps),
                                       static_cast<uint32_t>(purpose), static_cast<uint32_t>(node));
  return uniform < kLargest ? uniform : kLargest;
}

}  // namespace lamplighter::step
