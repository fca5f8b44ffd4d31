#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstddef>
#include <cstdint>

// Memory in which kernels keep what they compute on the way.
namespace lamplighter {

// `bytes` bytes of the calling thread, aligned to 64, until its next call. They grow to its largest call and
// stay.
void* thread_scratch(size_t bytes);

// The same for the blocks of a CUDA kernel, `bytes` each, on the device of a tensor; null where `bytes` is 0.
// Kernels that are queued on the current stream before it goes may use it.
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
