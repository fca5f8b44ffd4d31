#pragma once

#include "kernels/common/cuda/rows.h"
#include "kernels/trees/children_body.h"

// The kernels of sample_children and draft_children, one block for each row.
namespace lamplighter {
namespace {

// in_shared: whether a row of probabilities lies in shared memory.
__global__ void __launch_bounds__(kRowThreads)
    sample_children_kernel(SampleChildrenArgs args, char* scratch, int64_t scratch_bytes, bool in_shared) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  char* lists = scratch + blockIdx.x * scratch_bytes;
  float* room = reinterpret_cast<float*>(lists + children::kScratchPerToken * args.rows.vocabulary);
  children::sample_children_row(executor, args, blockIdx.x, lists,
                                in_shared ? reinterpret_cast<float*>(shared_memory()) : room);
}

// rows: null where the rows of a block lie in shared memory: guided logits, then probabilities.
__global__ void __launch_bounds__(kRowThreads)
    draft_children_kernel(GuideAndFilterArgs filter, SampleChildrenArgs sample, char* scratch,
                          int64_t scratch_bytes, float* rows) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  float* memory = block_memory(rows, 2 * filter.logits.vocabulary);
  sampling::guide_and_filter_row(executor, filter, blockIdx.x, memory);
  children::sample_children_row(executor, sample, blockIdx.x, scratch + blockIdx.x * scratch_bytes, memory);
}

}  // namespace
}  // namespace lamplighter
