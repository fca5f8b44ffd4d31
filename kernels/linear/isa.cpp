#include "kernels/common/this_isa.h"
#include "kernels/linear/tiles.h"
#if LAMPLIGHTER_THIS_ISA == 4
#include "kernels/linear/avx512.h"
#elif LAMPLIGHTER_THIS_ISA == 2
#include "kernels/linear/avx2.h"
#elif LAMPLIGHTER_THIS_ISA == 1
#include "kernels/linear/neon.h"
#else
#include "kernels/linear/portable.h"
#endif

namespace lamplighter {

template <>
void linear_cpu<kThisIsa>(const LinearArgs& args, int64_t begin, int64_t end, void* scratch) {
  auto* lines = static_cast<char*>(scratch);
  switch (args.format) {
    case LinearFormat::kFloat32:
      return run_linear<FloatKernel<float>>(args, begin, end, lines);
    case LinearFormat::kBFloat16:
      return run_linear<FloatKernel<uint16_t>>(args, begin, end, lines);
    case LinearFormat::kInt8:
      return run_linear<Integers<ByteWeights>>(args, begin, end, lines);
    case LinearFormat::kInt4:
      return run_linear<Integers<HalfByteWeights>>(args, begin, end, lines);
  }
}

}  // namespace lamplighter
