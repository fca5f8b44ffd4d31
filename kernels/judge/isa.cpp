#include "kernels/common/this_isa.h"
#include "kernels/judge/images.h"

namespace lamplighter {

template <>
void judge_cpu<kThisIsa>(const JudgeArgs& args, int64_t begin, int64_t end, float* scratch) {
  judging::judge_images<ThisTag>(args, begin, end, scratch);
}

}  // namespace lamplighter
