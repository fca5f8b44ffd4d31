#include "kernels/cuda_executor.h"
#include "kernels/cuda_launch.h"
#include "kernels/dynamic_body.h"

namespace lamplighter {
namespace {

constexpr int kThreads = 512;
using Executor = BlockExecutor<kThreads>;

__global__ void __launch_bounds__(kThreads)
    expand_kernel(ExpandArgs args, char* scratch, int64_t scratch_bytes) {
  __shared__ BlockStorage storage;
  Executor executor(&storage);
  dynamic::expand_row(executor, args, blockIdx.x, scratch + blockIdx.x * scratch_bytes);
}

// Uses the scratch memory of an image's first row.
__global__ void __launch_bounds__(kThreads)
    frontier_kernel(ExpandArgs args, char* scratch, int64_t scratch_bytes) {
  __shared__ BlockStorage storage;
  Executor executor(&storage);
  const int64_t image = blockIdx.x;
  dynamic::choose_frontier(executor, args, image,
                           reinterpret_cast<int*>(scratch + image * args.rows.rows * scratch_bytes));
}

__global__ void __launch_bounds__(kThreads)
    rerank_kernel(RerankArgs args, char* scratch, int64_t scratch_bytes) {
  __shared__ BlockStorage storage;
  Executor executor(&storage);
  const int64_t image = blockIdx.x;
  dynamic::rerank_image(executor, args, image, reinterpret_cast<int*>(scratch + image * scratch_bytes));
}

}  // namespace

void expand_cuda(const ExpandArgs& args, void* scratch, void* stream) {
  if (args.images == 0) return;
  const auto bytes =
      static_cast<int64_t>(expand_scratch_bytes(args.rows.vocabulary, args.rows.rows * args.k));
  char* memory = static_cast<char*>(scratch);
  expand_kernel<<<grid_size(args.images * args.rows.rows), kThreads, 0, cuda_stream(stream)>>>(args, memory,
                                                                                               bytes);
  frontier_kernel<<<grid_size(args.images), kThreads, 0, cuda_stream(stream)>>>(args, memory, bytes);
}

void rerank_cuda(const RerankArgs& args, void* scratch, void* stream) {
  if (args.images == 0) return;
  rerank_kernel<<<grid_size(args.images), kThreads, 0, cuda_stream(stream)>>>(
      args, static_cast<char*>(scratch), static_cast<int64_t>(rerank_scratch_bytes(args.pool)));
}

}  // namespace lamplighter
