#include "kernels/attend/body.h"
#include "kernels/common/simd_avx512.h"

namespace lamplighter {

void attend_avx512(const AttendArgs& args, int64_t begin, int64_t end, void* scratch) {
  attend_items<Avx512>(args, begin, end, scratch);
}

}  // namespace lamplighter
