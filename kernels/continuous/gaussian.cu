#include "kernels/common/cuda/launch.h"
#include "kernels/continuous/gaussian_cuda.h"

namespace lamplighter {

void gaussian_log_ratio_cuda(const GaussianLogRatioArgs& args, void* stream) {
  const int64_t blocks = (args.pairs.rows + kGaussianThreads - 1) / kGaussianThreads;
  if (blocks > 0)
    gaussian_log_ratio_kernel<<<grid_size(blocks), kGaussianThreads, 0, cuda_stream(stream)>>>(args);
}

void gaussian_residual_cuda(const GaussianResidualArgs& args, void* stream) {
  if (args.pairs.rows > 0)
    gaussian_residual_kernel<<<grid_size(args.pairs.rows), kGaussianThreads, 0, cuda_stream(stream)>>>(args);
}

}  // namespace lamplighter
