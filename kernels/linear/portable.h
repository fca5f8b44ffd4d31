#pragma once

#include "kernels/common/simd_portable.h"
#include "kernels/linear/integers.h"
#include "kernels/linear/lanes.h"

namespace lamplighter {
namespace {

// Sums and weights fit 16 registers of 4 lanes.
template <class Element>
using FloatKernel = LanesKernel<Portable, Element, 2, 0, false>;

struct Panel {
  static constexpr int kStreamedRows = 0;
  static constexpr int blocks(int) { return 1; }
  static constexpr int far(int, int) { return 64; }
  static constexpr int near(int) { return 4; }
};

template <class Weights>
using Integers = IntegerKernel<ByteProducts<Portable, Weights>, 2, Panel>;

}  // namespace
}  // namespace lamplighter
