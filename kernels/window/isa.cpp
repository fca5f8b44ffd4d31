#include "kernels/common/cpu_executor.h"
#include "kernels/common/this_isa.h"
#include "kernels/window/window_body.h"

namespace lamplighter {

template <>
void renew_window_cpu<kThisIsa>(const RenewWindowArgs& args, int64_t begin, int64_t end, float* scratch) {
  alignas(double) unsigned char cells[kExecutorCells * sizeof(double)];
  CpuExecutor<ThisTag> executor(cells);
  for (int64_t index = begin; index < end; ++index) window::renew_entry(executor, args, index, scratch);
}

template <>
void renew_fan_cpu<kThisIsa>(const RenewFanArgs& args, int64_t begin, int64_t end, float* scratch) {
  alignas(double) unsigned char cells[kExecutorCells * sizeof(double)];
  CpuExecutor<ThisTag> executor(cells);
  for (int64_t index = begin; index < end; ++index) window::renew_fan_entry(executor, args, index, scratch);
}

template <>
void fill_window_cpu<kThisIsa>(const FillWindowArgs& args, int64_t begin, int64_t end) {
  alignas(double) unsigned char cells[kExecutorCells * sizeof(double)];
  CpuExecutor<ThisTag> executor(cells);
  for (int64_t index = begin; index < end; ++index) window::fill_entry(executor, args, index);
}

}  // namespace lamplighter
