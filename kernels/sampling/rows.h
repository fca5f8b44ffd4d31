#pragma once

#include "kernels/common/cpu_executor.h"
#include "kernels/sampling/body.h"

// Loops over rows for the CPU; `Tag` as for CpuExecutor.
namespace lamplighter::sampling {

LAMPLIGHTER_INLINE float* after_cells(void* scratch) {
  return reinterpret_cast<float*>(static_cast<double*>(scratch) + kExecutorCells);
}

template <class Tag>
void guide_and_filter_rows(const GuideAndFilterArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<Tag> executor(scratch);
  for (int64_t row = begin; row < end; ++row) guide_and_filter_row(executor, args, row, after_cells(scratch));
}

template <class Tag>
void probabilities_rows(const ProbabilitiesArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<Tag> executor(scratch);
  for (int64_t row = begin; row < end; ++row) write_probabilities_row(executor, args.rows, row, args.out);
}

template <class Tag>
void draw_rows(const DrawArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<Tag> executor(scratch);
  for (int64_t row = begin; row < end; ++row) draw_row(executor, args, row, after_cells(scratch));
}

}  // namespace lamplighter::sampling
