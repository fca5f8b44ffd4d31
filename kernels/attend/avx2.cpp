#include "kernels/attend/body.h"
#include "kernels/common/simd_avx2.h"

namespace lamplighter {

void attend_avx2(const AttendArgs& args, int64_t begin, int64_t end, void* scratch) {
  attend_items<Avx2>(args, begin, end, scratch);
}

}  // namespace lamplighter
