#pragma once

#include "kernels/common/cpu_executor.h"
#include "kernels/trees/children_body.h"

// Loop over rows for the CPU; `Tag` as for CpuExecutor.
namespace lamplighter::children {

template <class Tag>
void draw_children_rows(const DrawChildrenArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<Tag> executor(scratch);
  void* memory = static_cast<double*>(scratch) + kExecutorCells;
  float* room =
      reinterpret_cast<float*>(static_cast<char*>(memory) + kScratchPerToken * args.rows.vocabulary);
  for (int64_t row = begin; row < end; ++row) draw_children_row(executor, args, row, memory, room);
}

}  // namespace lamplighter::children
