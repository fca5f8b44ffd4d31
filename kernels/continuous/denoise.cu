#include "kernels/common/cuda/launch.h"
#include "kernels/continuous/denoise_cuda.h"

namespace lamplighter {
namespace {

unsigned blocks_for(int64_t numbers) {
  return grid_size((numbers + kDenoiseThreads - 1) / kDenoiseThreads);
}

}  // namespace

void denoise_silu_cuda(const DenoiseSiluArgs& args, void* stream) {
  const int64_t numbers = args.steps * args.rows * args.width;
  denoise_silu_kernel<<<blocks_for(numbers), kDenoiseThreads, 0, cuda_stream(stream)>>>(args);
}

void denoise_advance_cuda(const DenoiseAdvanceArgs& args, void* stream) {
  denoise_advance_kernel<<<grid_size(args.rows), kDenoiseThreads, 0, cuda_stream(stream)>>>(args);
}

void denoise_step_cuda(const DenoiseStepArgs& args, void* stream) {
  const int64_t numbers = args.all.tokens * args.channels;
  denoise_step_kernel<<<blocks_for(numbers), kDenoiseThreads, 0, cuda_stream(stream)>>>(args);
}

}  // namespace lamplighter
