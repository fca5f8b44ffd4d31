#include "kernels/cuda_executor.h"
#include "kernels/cuda_launch.h"
#include "kernels/verify_body.h"

namespace lamplighter {
namespace {

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads)
    verify_kernel(VerifyArgs args, float* scratch, int64_t scratch_floats) {
  __shared__ BlockStorage storage;
  BlockExecutor<kThreads> executor(&storage);
  const int64_t image = blockIdx.x;
  verification::verify_image<verification::NoBugs>(executor, args, image, scratch + image * scratch_floats);
}

}  // namespace

void verify_cuda(const VerifyArgs& args, float* scratch, void* stream) {
  if (args.images == 0) return;
  verify_kernel<<<grid_size(args.images), kThreads, 0, cuda_stream(stream)>>>(
      args, scratch, static_cast<int64_t>(verify_scratch_floats(args)));
}

}  // namespace lamplighter
