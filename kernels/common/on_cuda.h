#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

namespace lamplighter {

// queue(stream) puts kernels on `stream` (a cudaStream_t): the current one of the tensor's device, which is
// the current device meanwhile. Throws c10::Error when a launch failed. In builds with CUDA alone.
void on_cuda(const at::Tensor& tensor, c10::function_ref<void(void*)> queue);

}  // namespace lamplighter
