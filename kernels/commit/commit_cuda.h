#pragma once

#include "kernels/commit/commit_body.h"
#include "kernels/common/cuda/device.h"

// Kernels of commit.h on CUDA.
namespace lamplighter {
namespace {

constexpr int kTreeRowsThreads = 128;
constexpr int kCommitThreads = 64;

__global__ void __launch_bounds__(kTreeRowsThreads) tree_rows_kernel(TreeRowsArgs args) {
  const int64_t i = int64_t{blockIdx.x} * kTreeRowsThreads + threadIdx.x;
  if (i < args.sequences * args.rows) tree_row(args, i / args.rows, i % args.rows);
}

// One block per image.
__global__ void __launch_bounds__(kCommitThreads) commit_tokens_kernel(CommitArgs args) {
  commit_image(args, blockIdx.x, threadIdx.x, kCommitThreads, [] { __syncthreads(); });
}

}  // namespace
}  // namespace lamplighter
