#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace lamplighter {

// Makes a tensor's device the current one and holds its current stream; launch() calls a function that queues
// kernels on it and turns a failed launch into an error.
class CudaLauncher {
 public:
  explicit CudaLauncher(const at::Tensor& tensor) : guard_(tensor.device()) {}

  template <class F>
  void launch(F queue) const {
    queue(static_cast<void*>(c10::cuda::getCurrentCUDAStream().stream()));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

 private:
  c10::cuda::CUDAGuard guard_;
};

// Global memory for the blocks of a kernel, `bytes` each, on the device of a tensor; null where `bytes` is 0.
class CudaScratch {
 public:
  CudaScratch(const at::Tensor& tensor, int64_t blocks, size_t bytes) {
    if (bytes == 0) return;
    memory_ = at::empty({blocks, static_cast<int64_t>(bytes)}, tensor.options().dtype(at::kByte));
  }

  template <class T = void>
  T* get() const {
    return memory_.defined() ? static_cast<T*>(memory_.mutable_data_ptr()) : nullptr;
  }

 private:
  at::Tensor memory_;
};

}  // namespace lamplighter
