#include "kernels/commit/new_tokens_cuda.h"
#include "kernels/common/cuda/launch.h"

namespace lamplighter {

void new_tokens_cuda(const NewTokensArgs& args, void* stream) {
  const int64_t blocks = args.draft_sequences * args.new_tokens;
  if (blocks > 0) new_tokens_kernel<<<grid_size(blocks), kNewTokensThreads, 0, cuda_stream(stream)>>>(args);
}

}  // namespace lamplighter
