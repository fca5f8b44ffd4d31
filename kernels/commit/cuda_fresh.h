#pragma once

#include "kernels/commit/fresh_body.h"
#include "kernels/common/cuda/device.h"

// The kernel of fresh.h on CUDA.
namespace lamplighter {
namespace {

constexpr int kFreshThreads = 128;

// One block per row of the drafter's sequences.
__global__ void __launch_bounds__(kFreshThreads) fresh_rows_kernel(FreshRowsArgs args) {
  const int64_t row = blockIdx.x;
  fresh_row(args, row / args.fresh_rows, row % args.fresh_rows, threadIdx.x, kFreshThreads);
}

}  // namespace
}  // namespace lamplighter
