#include "kernels/linear.h"
#include "kernels/linear_lanes.h"
#include "kernels/linear_tiles.h"
#include "kernels/simd_avx2.h"

namespace lamplighter {
namespace {

template <class Element>
using Kernel = LanesKernel<Avx2, Element, 6, 2>;  // sums, weights and one value of x fit 16 registers

}  // namespace

void linear_avx2(const LinearArgs& args, int64_t begin, int64_t end, void* scratch) {
  if (args.type == ElementType::kFloat32) {
    run_linear<Kernel<float>>(args, begin, end, static_cast<char*>(scratch));
  } else {
    run_linear<Kernel<uint16_t>>(args, begin, end, static_cast<char*>(scratch));
  }
}

}  // namespace lamplighter
