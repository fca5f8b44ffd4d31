#pragma once

#include "kernels/common/simd_avx2.h"
#include "kernels/linear/integers.h"
#include "kernels/linear/lanes.h"

namespace lamplighter {
namespace {

// What a step holds fits 16 registers.
template <class Element>
using FloatKernel = LanesKernel<Avx2, Element, 6, 2, sizeof(Element) == 2>;

struct Panel {
  static constexpr int kStreamedRows = 0;
  static constexpr int blocks(int rows) { return rows <= 2 ? 2 : 1; }
  static constexpr int far(int, int) { return 64; }
  static constexpr int near(int) { return 4; }
};

template <class Weights>
using Integers = IntegerKernel<Avx2, Weights, 6, Panel>;

}  // namespace
}  // namespace lamplighter
