#pragma once

#include "kernels/common/cuda/executor.h"

// Where the blocks of the kernels over rows keep what they compute.
namespace lamplighter {

constexpr int kRowThreads = 1024;
using RowExecutor = BlockExecutor<kRowThreads>;

// The block's memory: `bytes` for each block of `global`, or dynamic shared memory where `global` is null.
template <class T>
__device__ T* block_memory(T* global, int64_t count) {
  return global != nullptr ? global + blockIdx.x * count : reinterpret_cast<T*>(shared_memory());
}

}  // namespace lamplighter
