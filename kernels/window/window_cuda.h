#pragma once

#include "kernels/common/cuda/rows.h"
#include "kernels/window/window_body.h"

// The kernels of a window, a block for each entry.
namespace lamplighter {
namespace {

__global__ void __launch_bounds__(kRowThreads) renew_window_kernel(RenewWindowArgs args, float* scratch) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  window::renew_entry(executor, args, blockIdx.x, scratch + blockIdx.x * args.verify.vocabulary);
}

__global__ void __launch_bounds__(kRowThreads) renew_fan_kernel(RenewFanArgs args, float* scratch) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  window::renew_fan_entry(executor, args, blockIdx.x, scratch + blockIdx.x * args.verify.vocabulary);
}

__global__ void __launch_bounds__(kRowThreads) fill_window_kernel(FillWindowArgs args) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  window::fill_entry(executor, args, blockIdx.x);
}

}  // namespace
}  // namespace lamplighter
