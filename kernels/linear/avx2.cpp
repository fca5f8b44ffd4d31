#include "kernels/common/simd_avx2.h"
#include "kernels/linear/int8.h"
#include "kernels/linear/lanes.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/tiles.h"

namespace lamplighter {
namespace {

template <class Element>
using Kernel = LanesKernel<Avx2, Element, 6, 2, sizeof(Element) == 2>;  // what a step holds fits 16 registers

struct Panel {
  static constexpr int blocks(int rows) { return rows <= 2 ? 2 : 1; }
};

}  // namespace

void linear_avx2(const LinearArgs& args, int64_t begin, int64_t end, void* scratch) {
  auto* lines = static_cast<char*>(scratch);
  switch (args.format) {
    case LinearFormat::kFloat32:
      return run_linear<Kernel<float>>(args, begin, end, lines);
    case LinearFormat::kBFloat16:
      return run_linear<Kernel<uint16_t>>(args, begin, end, lines);
    case LinearFormat::kInt8:
      return run_linear<Int8Kernel<Avx2, 6, Panel>>(args, begin, end, lines);
  }
}

void linear_quantise_avx2(const uint16_t* x, int64_t rows, int64_t in, int64_t padded, int16_t* to,
                          float* scales) {
  quantise_rows(x, rows, in, padded, to, scales);
}

}  // namespace lamplighter
