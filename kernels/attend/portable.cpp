#include "kernels/attend/body.h"
#include "kernels/common/simd_portable.h"

namespace lamplighter {

void attend_portable(const AttendArgs& args, int64_t begin, int64_t end, void* scratch) {
  attend_items<Portable>(args, begin, end, scratch);
}

}  // namespace lamplighter
