#pragma once

#include "kernels/common/cuda/rows.h"
#include "kernels/trees/dynamic_body.h"

// The kernels of dynamic trees, one block for each row or image.
namespace lamplighter {
namespace {

constexpr int kImageThreads = 512;
using ImageExecutor = BlockExecutor<kImageThreads>;

// in_shared: whether a row of probabilities lies in shared memory.
__global__ void __launch_bounds__(kRowThreads)
    expand_kernel(ExpandArgs args, char* scratch, int64_t scratch_bytes, bool in_shared) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  float* room = reinterpret_cast<float*>(scratch + blockIdx.x * scratch_bytes);
  dynamic::expand_row(executor, args, blockIdx.x, room + args.rows.vocabulary,
                      in_shared ? reinterpret_cast<float*>(shared_memory()) : room);
}

// Uses the scratch memory of an image's first row.
__global__ void __launch_bounds__(kImageThreads)
    frontier_kernel(ExpandArgs args, char* scratch, int64_t scratch_bytes) {
  __shared__ BlockStorage storage;
  ImageExecutor executor(&storage);
  const int64_t image = blockIdx.x;
  dynamic::choose_frontier(executor, args, image,
                           reinterpret_cast<int*>(scratch + image * args.rows.rows * scratch_bytes));
}

__global__ void __launch_bounds__(kImageThreads)
    rerank_kernel(RerankArgs args, char* scratch, int64_t scratch_bytes) {
  __shared__ BlockStorage storage;
  ImageExecutor executor(&storage);
  const int64_t image = blockIdx.x;
  dynamic::rerank_image(executor, args, image, reinterpret_cast<int*>(scratch + image * scratch_bytes));
}

}  // namespace
}  // namespace lamplighter
