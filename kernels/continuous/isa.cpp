#include "kernels/common/cpu_executor.h"
#include "kernels/common/this_isa.h"
#include "kernels/continuous/body.h"

namespace lamplighter {

template <>
void gaussian_log_ratio_cpu<kThisIsa>(const GaussianLogRatioArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) continuous::log_ratio_row(args, row);
}

template <>
void gaussian_residual_cpu<kThisIsa>(const GaussianResidualArgs& args, int64_t begin, int64_t end) {
  CpuExecutor<ThisTag> executor(nullptr);
  for (int64_t row = begin; row < end; ++row) continuous::residual_row(executor, args, row);
}

}  // namespace lamplighter
