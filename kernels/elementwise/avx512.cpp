#include "kernels/common/simd_avx512.h"
#include "kernels/elementwise/body.h"

namespace lamplighter {

void rms_norm_avx512(const RmsNormArgs& args, int64_t begin, int64_t end) {
  rms_norm_on<Avx512>(args, begin, end);
}

void silu_mul_avx512(const SiluMulArgs& args, int64_t begin, int64_t end) {
  silu_mul_on<Avx512>(args, begin, end);
}

void norm_heads_avx512(const NormHeadsArgs& args, int64_t begin, int64_t end) {
  norm_heads_on<Avx512>(args, begin, end);
}

}  // namespace lamplighter
