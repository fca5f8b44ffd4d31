#pragma once

#include "kernels/common/cuda/rows.h"
#include "kernels/sampling/sampling_body.h"

// The kernels over rows of logits, one block each.
namespace lamplighter {
namespace {

// rows: null where the rows of a block lie in shared memory.
__global__ void __launch_bounds__(kRowThreads) guide_and_filter_kernel(GuideAndFilterArgs args, float* rows) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  sampling::guide_and_filter_row(executor, args, blockIdx.x, block_memory(rows, 2 * args.logits.vocabulary));
}

__global__ void __launch_bounds__(kRowThreads) probabilities_kernel(ProbabilitiesArgs args) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  sampling::write_probabilities_row(executor, args.rows, blockIdx.x, args.out);
}

__global__ void __launch_bounds__(kRowThreads) sample_kernel(SampleArgs args, float* rows) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  sampling::sample_row(executor, args, blockIdx.x, block_memory(rows, args.rows.vocabulary));
}

}  // namespace
}  // namespace lamplighter
