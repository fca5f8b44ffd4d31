#include "kernels/common/cuda/launch.h"
#include "kernels/trees/dynamic_cuda.h"

namespace lamplighter {

void expand_cuda(const ExpandArgs& args, void* scratch, void* stream) {
  if (args.images == 0) return;
  const auto bytes =
      static_cast<int64_t>(expand_scratch_bytes(args.rows.vocabulary, args.rows.rows * args.k));
  char* memory = static_cast<char*>(scratch);
  const size_t row = static_cast<size_t>(args.rows.vocabulary) * sizeof(float);
  const size_t shared = args.rows.statistics != nullptr ? shared_bytes_for(expand_kernel, row) : 0;
  expand_kernel<<<grid_size(args.images * args.rows.rows), kRowThreads, shared, cuda_stream(stream)>>>(
      args, memory, bytes, shared > 0);
  frontier_kernel<<<grid_size(args.images), kImageThreads, 0, cuda_stream(stream)>>>(args, memory, bytes);
}

void rerank_cuda(const RerankArgs& args, void* scratch, void* stream) {
  if (args.images == 0) return;
  rerank_kernel<<<grid_size(args.images), kImageThreads, 0, cuda_stream(stream)>>>(
      args, static_cast<char*>(scratch), static_cast<int64_t>(rerank_scratch_bytes(args.pool)));
}

}  // namespace lamplighter
