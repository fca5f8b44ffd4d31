#pragma once

#include "kernels/commit/new_tokens_body.h"
#include "kernels/common/cuda/device.h"

// The kernel of new_tokens.h on CUDA.
namespace lamplighter {
namespace {

constexpr int kNewTokensThreads = 128;

// One block per row of the drafter's sequences.
__global__ void __launch_bounds__(kNewTokensThreads) new_tokens_kernel(NewTokensArgs args) {
  const int64_t row = blockIdx.x;
  new_token(args, row / args.new_tokens, row % args.new_tokens, threadIdx.x, kNewTokensThreads);
}

}  // namespace
}  // namespace lamplighter
