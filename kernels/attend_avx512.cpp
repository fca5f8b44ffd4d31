#include "kernels/attend_body.h"
#include "kernels/simd_avx512.h"

namespace lamplighter {

void attend_avx512(const AttendArgs& args, int64_t begin, int64_t end, void* scratch) {
  attend_items<Avx512>(args, begin, end, scratch);
}

}  // namespace lamplighter
