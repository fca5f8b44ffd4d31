#include "kernels/common/on_cuda.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace lamplighter {

void on_cuda(const at::Tensor& tensor, c10::function_ref<void(void*)> queue) {
  const c10::cuda::CUDAGuard guard(tensor.device());
  queue(static_cast<void*>(c10::cuda::getCurrentCUDAStream().stream()));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace lamplighter
