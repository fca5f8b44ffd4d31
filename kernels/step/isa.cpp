#include "kernels/common/cpu_executor.h"
#include "kernels/common/this_isa.h"
#include "kernels/step/ar_step_body.h"
#include "kernels/step/window_step_body.h"

namespace lamplighter {

template <>
void ar_step_cpu<kThisIsa>(const ArStepArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<ThisTag> executor(scratch);
  for (int64_t image = begin; image < end; ++image) {
    const int64_t token = step::next_token(executor, args, image, after_cells<float>(scratch));
    step::commit_next(args, image, token, 0, 1, [] {});
  }
}

// A row behind the end of the walk is asked for what the next window needs alone, one before it for the walk.
template <>
void window_step_cpu<kThisIsa>(const WindowStepArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<ThisTag> executor(scratch);
  const int64_t nodes = args.filter.logits.rows;
  for (int64_t image = begin; image < end; ++image) {
    bool walks = true;
    for (int64_t node = 0; node < nodes; ++node) {
      WindowVerdict& verdict = args.verdicts[image * nodes + node];
      verdict = step::verify_row(executor, args, step::window_row(args, image, node), walks, !walks,
                                 after_cells<float>(scratch));
      walks = walks && verdict.accepts != 0;
    }
    step::finish_window(args, image, 0, 1, [] {});
  }
}

}  // namespace lamplighter
