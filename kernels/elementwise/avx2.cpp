#include "kernels/common/simd_avx2.h"
#include "kernels/elementwise/body.h"

namespace lamplighter {

void rms_norm_avx2(const RmsNormArgs& args, int64_t begin, int64_t end) {
  rms_norm_on<Avx2>(args, begin, end);
}

void silu_mul_avx2(const SiluMulArgs& args, int64_t begin, int64_t end) {
  silu_mul_on<Avx2>(args, begin, end);
}

void norm_heads_avx2(const NormHeadsArgs& args, int64_t begin, int64_t end) {
  norm_heads_on<Avx2>(args, begin, end);
}

}  // namespace lamplighter
