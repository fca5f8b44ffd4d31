#include "kernels/common/this_isa.h"
#include "kernels/verify/verify_images.h"

namespace lamplighter {

template <>
void verify_cpu<kThisIsa>(const VerifyArgs& args, int64_t begin, int64_t end, float* scratch) {
  verification::verify_images<ThisTag>(args, begin, end, scratch);
}

}  // namespace lamplighter
