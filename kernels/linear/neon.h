#pragma once

#include "kernels/common/simd_neon.h"
#include "kernels/linear/integers.h"
#include "kernels/linear/lanes.h"

namespace lamplighter {
namespace {

// What a step holds fits 32 registers of 4 lanes.
template <class Element>
using FloatKernel = LanesKernel<Neon, Element, 6, 2, sizeof(Element) == 2>;

// Dot products (sdot) of signed bytes. Weights of kInt8 lose their offset on the way; weights of kInt4 are
// positive and keep it.
template <class Weights>
struct SignedProducts : ByteProducts<Neon, Weights> {
  using Base = ByteProducts<Neon, Weights>;
  using Words = typename Base::Words;
  static constexpr bool kBytes = Weights::kBits == 8;

  static uint32_t start(const int8_t* values, int sum) { return kBytes ? 0 : Base::start(values, sum); }
  static Words part(Words stored, int part) {
    return kBytes ? stored ^ Neon::set_word(0x80808080U) : Base::part(stored, part);
  }
};

struct Panel {
  static constexpr int kStreamedRows = 0;
  static constexpr int blocks(int rows) { return rows <= 2 ? 2 : 1; }
  static constexpr int far(int, int) { return 160; }
  static constexpr int near(int) { return 32; }
};

template <class Weights>
using Integers = IntegerKernel<SignedProducts<Weights>, 6, Panel>;

}  // namespace
}  // namespace lamplighter
