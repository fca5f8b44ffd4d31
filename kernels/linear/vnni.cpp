#include "kernels/common/simd_avx2.h"
#include "kernels/linear/avx2.h"
#include "kernels/linear/integers.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/tiles.h"

// Compiled twice, for the two encodings of one instruction: VEX (AVX-VNNI) and EVEX (AVX-512 VNNI and VL).
namespace lamplighter {
namespace {

// vpdpbusd on 256 bits.
struct Vnni : Avx2 {
  static W add_bytes(W sum, W weights, W value) {
#if defined(__AVXVNNI__)
    return _mm256_dpbusd_avx_epi32(sum, weights, value);
#else
    return _mm256_dpbusd_epi32(sum, weights, value);
#endif
  }
};

template <class Weights>
using VnniIntegers = IntegerKernel<ByteProducts<Vnni, Weights>, 6, Panel>;

}  // namespace

#if defined(__AVXVNNI__)
void linear_integers_vex(const LinearArgs& args, int64_t begin, int64_t end, void* scratch) {
#else
void linear_integers_evex(const LinearArgs& args, int64_t begin, int64_t end, void* scratch) {
#endif
  auto* lines = static_cast<char*>(scratch);
  if (args.format == LinearFormat::kInt8) {
    run_linear<VnniIntegers<ByteWeights>>(args, begin, end, lines);
  } else {
    run_linear<VnniIntegers<HalfByteWeights>>(args, begin, end, lines);
  }
}

}  // namespace lamplighter
