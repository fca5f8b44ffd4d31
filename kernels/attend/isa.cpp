#include "kernels/attend/attend_body.h"
#include "kernels/common/this_isa.h"

namespace lamplighter {

template <>
void attend_cpu<kThisIsa>(const AttendArgs& args, int64_t begin, int64_t end, void* scratch) {
  for (int64_t item = begin; item < end; ++item) {
    if (args.type == ElementType::kFloat32) {
      attend_item<ThisSimd, float>(args, item, scratch);
    } else {
      attend_item<ThisSimd, uint16_t>(args, item, scratch);
    }
  }
}

}  // namespace lamplighter
