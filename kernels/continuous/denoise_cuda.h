#pragma once

#include "kernels/common/cuda/executor.h"
#include "kernels/continuous/denoise_body.h"

// What lies between the products of a chain: a block for each row that is normed, else a thread for each
// number.
namespace lamplighter {
namespace {

constexpr int kDenoiseThreads = 256;

__global__ void __launch_bounds__(kDenoiseThreads) denoise_silu_kernel(DenoiseSiluArgs args) {
  const int64_t i = int64_t{blockIdx.x} * kDenoiseThreads + threadIdx.x;
  if (i >= args.steps * args.rows * args.width) return;
  const int64_t column = i % args.width;
  float z = args.x[i % (args.rows * args.width)] + args.bias[column];
  if (args.times != nullptr) z += args.times[i / (args.rows * args.width) * args.width + column];
  args.out[i] = z / (1.0F + expf(-z));
}

__global__ void __launch_bounds__(kDenoiseThreads) denoise_advance_kernel(DenoiseAdvanceArgs args) {
  __shared__ BlockStorage storage;
  BlockExecutor<kDenoiseThreads> executor(&storage);
  continuous::advance_row(executor, args, blockIdx.x);
}

__global__ void __launch_bounds__(kDenoiseThreads) denoise_step_kernel(DenoiseStepArgs args) {
  const int64_t i = int64_t{blockIdx.x} * kDenoiseThreads + threadIdx.x;
  if (i < args.all.tokens * args.channels)
    continuous::step_channel(args, i / args.channels, i % args.channels);
}

}  // namespace
}  // namespace lamplighter
