#include <cstdint>

#include "kernels/linear.h"
#include "kernels/linear_lanes.h"
#include "kernels/linear_tiles.h"
#include "kernels/simd_portable.h"

namespace lamplighter {
namespace {

template <class Element>
using Kernel = LanesKernel<Portable, Element, 2, 0>;  // sums and weights fit 16 registers of 4 lanes

template <class Element>
void pack_blocks(const Element* weight, Element* packed, int64_t out_features, int64_t in, int64_t begin,
                 int64_t end) {
  constexpr int64_t group = sizeof(Element) == 2 ? 2 : 1;  // features side by side
  const int64_t grouped = in / group * group;
  for (int64_t block = begin; block < end; ++block) {
    const int64_t left = out_features - block * kLinearBlock;
    const int64_t features = left < kLinearBlock ? left : kLinearBlock;
    const Element* from = weight + block * kLinearBlock * in;
    Element* to = packed + block * kLinearBlock * in;
    for (int64_t k = 0; k < in; ++k) {
      const int64_t width = k < grouped ? group : 1;
      Element* base = to + k / width * width * kLinearBlock + k % width;
      for (int64_t o = 0; o < kLinearBlock; ++o)
        base[o * width] = o < features ? from[o * in + k] : Element{0};
    }
  }
}

}  // namespace

void pack_linear_blocks(const void* weight, void* packed, int64_t out_features, int64_t in, ElementType type,
                        int64_t begin, int64_t end) {
  if (type == ElementType::kFloat32) {
    pack_blocks(static_cast<const float*>(weight), static_cast<float*>(packed), out_features, in, begin, end);
  } else {
    pack_blocks(static_cast<const uint16_t*>(weight), static_cast<uint16_t*>(packed), out_features, in, begin,
                end);
  }
}

int64_t linear_rows_per_pass(int64_t rows, int64_t in) {
  constexpr int64_t cache = 256 * 1024;  // packed rows of a pass: they stay in the second-level cache
  constexpr int64_t least = 12;
  const int64_t row_bytes = (in + 15) / 16 * 64;
  const int64_t fit = cache / row_bytes < least ? least : cache / row_bytes;
  const int64_t passes = (rows + fit - 1) / fit;
  return passes == 0 ? 1 : (rows + passes - 1) / passes;
}

size_t linear_scratch_bytes(const LinearArgs& args) {
  return static_cast<size_t>(args.rows_per_pass * ((args.in + 15) / 16 * 64));
}

void linear_portable(const LinearArgs& args, int64_t begin, int64_t end, void* scratch) {
  if (args.type == ElementType::kFloat32) {
    run_linear<Kernel<float>>(args, begin, end, static_cast<char*>(scratch));
  } else {
    run_linear<Kernel<uint16_t>>(args, begin, end, static_cast<char*>(scratch));
  }
}

}  // namespace lamplighter
