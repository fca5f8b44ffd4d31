#pragma once

#include "kernels/common/cpu_executor.h"
#include "kernels/trees/dynamic_body.h"

// Loop over rows for the CPU; `Tag` as for CpuExecutor.
namespace lamplighter::dynamic {

template <class Tag>
void expand_rows(const ExpandArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<Tag> executor(scratch);
  float* room = reinterpret_cast<float*>(static_cast<double*>(scratch) + kExecutorCells);
  for (int64_t row = begin; row < end; ++row) {
    expand_row(executor, args, row, room + args.rows.vocabulary, room);
  }
}

}  // namespace lamplighter::dynamic
