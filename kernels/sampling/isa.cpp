#include "kernels/common/cpu_executor.h"
#include "kernels/common/this_isa.h"
#include "kernels/sampling/sampling_body.h"

namespace lamplighter {

template <>
void guide_and_filter_cpu<kThisIsa>(const GuideAndFilterArgs& args, int64_t begin, int64_t end,
                                    void* scratch) {
  CpuExecutor<ThisTag> executor(scratch);
  for (int64_t row = begin; row < end; ++row) {
    sampling::guide_and_filter_row(executor, args, row, after_cells<float>(scratch));
  }
}

template <>
void probabilities_cpu<kThisIsa>(const ProbabilitiesArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<ThisTag> executor(scratch);
  for (int64_t row = begin; row < end; ++row) {
    sampling::write_probabilities_row(executor, args.rows, row, args.out);
  }
}

template <>
void sample_cpu<kThisIsa>(const SampleArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<ThisTag> executor(scratch);
  for (int64_t row = begin; row < end; ++row) {
    sampling::sample_row(executor, args, row, after_cells<float>(scratch));
  }
}

}  // namespace lamplighter
