#pragma once

#include <ATen/core/Tensor.h>
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

}  // namespace lamplighter
