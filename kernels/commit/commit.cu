#include "kernels/commit/commit_cuda.h"
#include "kernels/common/cuda/launch.h"

namespace lamplighter {

void tree_rows_cuda(const TreeRowsArgs& args, void* stream) {
  const int64_t blocks = (args.sequences * args.rows + kTreeRowsThreads - 1) / kTreeRowsThreads;
  if (blocks > 0) tree_rows_kernel<<<grid_size(blocks), kTreeRowsThreads, 0, cuda_stream(stream)>>>(args);
}

void commit_tokens_cuda(const CommitArgs& args, void* stream) {
  commit_tokens_kernel<<<grid_size(args.images), kCommitThreads, 0, cuda_stream(stream)>>>(args);
}

}  // namespace lamplighter
