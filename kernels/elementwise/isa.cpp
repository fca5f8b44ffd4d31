#include "kernels/common/this_isa.h"
#include "kernels/elementwise/elementwise_body.h"

namespace lamplighter {

template <>
void rms_norm_cpu<kThisIsa>(const RmsNormArgs& args, int64_t begin, int64_t end) {
  with_elements(args.type,
                [&](auto element) { rms_norm_rows<ThisSimd, decltype(element)>(args, begin, end); });
}

template <>
void silu_mul_cpu<kThisIsa>(const SiluMulArgs& args, int64_t begin, int64_t end) {
  with_elements(args.type,
                [&](auto element) { silu_mul_rows<ThisSimd, decltype(element)>(args, begin, end); });
}

template <>
void gelu_cpu<kThisIsa>(const GeluArgs& args, int64_t begin, int64_t end) {
  with_elements(args.type, [&](auto element) { gelu_rows<ThisSimd, decltype(element)>(args, begin, end); });
}

template <>
void norm_heads_cpu<kThisIsa>(const NormHeadsArgs& args, int64_t begin, int64_t end) {
  with_elements(args.type,
                [&](auto element) { norm_heads_rows<ThisSimd, decltype(element)>(args, begin, end); });
}

}  // namespace lamplighter
