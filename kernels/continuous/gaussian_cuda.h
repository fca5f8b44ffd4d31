#pragma once

#include "kernels/common/cuda/executor.h"
#include "kernels/continuous/gaussian_body.h"

// The kernels of continuous tokens. Proposals are few: a small block for each row.
namespace lamplighter {
namespace {

constexpr int kGaussianThreads = 128;

__global__ void __launch_bounds__(kGaussianThreads) gaussian_log_ratio_kernel(GaussianLogRatioArgs args) {
  const int64_t row = int64_t{blockIdx.x} * kGaussianThreads + threadIdx.x;
  if (row < args.pairs.rows) continuous::log_ratio_row(args, row);
}

__global__ void __launch_bounds__(kGaussianThreads) gaussian_residual_kernel(GaussianResidualArgs args) {
  __shared__ BlockStorage storage;
  BlockExecutor<kGaussianThreads> executor(&storage);
  continuous::residual_row(executor, args, blockIdx.x);
}

}  // namespace
}  // namespace lamplighter
