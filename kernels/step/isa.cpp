#include "kernels/common/cpu_executor.h"
#include "kernels/common/this_isa.h"
#include "kernels/step/ar_step_body.h"

namespace lamplighter {

template <>
void ar_step_cpu<kThisIsa>(const ArStepArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<ThisTag> executor(scratch);
  for (int64_t image = begin; image < end; ++image) {
    const int64_t token = step::next_token(executor, args, image, after_cells<float>(scratch));
    step::commit_next(args, image, token, 0, 1, [] {});
  }
}

}  // namespace lamplighter
