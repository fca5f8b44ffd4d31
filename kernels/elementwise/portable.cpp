#include "kernels/common/simd_portable.h"
#include "kernels/elementwise/body.h"

namespace lamplighter {

void rms_norm_portable(const RmsNormArgs& args, int64_t begin, int64_t end) {
  rms_norm_on<Portable>(args, begin, end);
}

void silu_mul_portable(const SiluMulArgs& args, int64_t begin, int64_t end) {
  silu_mul_on<Portable>(args, begin, end);
}

void norm_heads_portable(const NormHeadsArgs& args, int64_t begin, int64_t end) {
  norm_heads_on<Portable>(args, begin, end);
}

}  // namespace lamplighter
