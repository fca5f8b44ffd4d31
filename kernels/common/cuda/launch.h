#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <initializer_list>

#include "kernels/common/element_type.h"
#include "kernels/common/numbers.h"

// Host-side helpers of the .cu files, which include nothing of Torch.
namespace lamplighter {

inline cudaStream_t cuda_stream(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

// First dimension of a grid; it holds up to 2^31 - 1 blocks, far more than any shape here needs.
inline unsigned grid_size(int64_t blocks) {
  return static_cast<unsigned>(blocks);
}

// The bytes of dynamic shared memory with which every block of `kernel` can hold `bytes` of rows; 0 where the
// current device has less, and the rows go to global memory. Raises the kernel's limit to the device's: it
// belongs to all threads and captured graphs.
template <class Kernel>
size_t shared_bytes_for(Kernel* kernel, size_t bytes) {
  int device = 0, most = 0;
  cudaFuncAttributes attributes{};
  const bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess &&
      cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess;
  if (!known || bytes + attributes.sharedSizeBytes > static_cast<size_t>(most)) return 0;
  const cudaError_t raised = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                  most - static_cast<int>(attributes.sharedSizeBytes));
  return raised == cudaSuccess ? bytes : 0;
}

// How kernels that follow each other share a processor of the current device.
struct Chaining {
  bool early = false;      // a kernel can start before the one in front of it is done
  int shared_percent = 0;  // of the processor's memory on chip
};

// All chained kernels ask for the same division of that memory, because a new one waits for an empty
// processor: shared memory for two blocks of attention; the rest, of which data of loads needs a part while
// it is on its way, is cache.
inline Chaining chaining() {
  constexpr int kSharedBytes = 100 << 10;
  int device = 0, major = 0, most = 0;
  const bool known =
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device) == cudaSuccess;
  if (!known || most < kSharedBytes) return {};
  return {major >= 9, kSharedBytes / (most / 100)};
}

// Queues a kernel that calls wait_for_earlier_kernels(), so that its start overlaps with the end of the
// kernel before it (programmatic dependent launch).
template <class... Parameters>
void launch_chained(void (*kernel)(Parameters...), dim3 grid, unsigned threads, size_t shared_bytes,
                    cudaStream_t stream, Parameters... arguments) {
  const Chaining chain = chaining();
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
  attributes[0].val.sharedMemCarveout = static_cast<unsigned>(chain.shared_percent);
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = chain.early ? 2 : chain.shared_percent > 0 ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, arguments...);
}

// f(T{}) with the storage type of `type`.
template <class F>
void with_element_type(ElementType type, F f) {
  switch (type) {
    case ElementType::kFloat32:
      return f(float{});
    case ElementType::kBFloat16:
      return f(BFloat16Bits{});
    case ElementType::kFloat16:
      return f(Float16Bits{});
  }
}

// Elements of 16 bytes when `width` and all addresses allow such accesses, else 1.
template <class T>
int pack_size(int64_t width, std::initializer_list<const void*> addresses) {
  constexpr int kSize = 16 / static_cast<int>(sizeof(T));
  bool aligned = width % kSize == 0;
  for (const void* address : addresses) aligned = aligned && reinterpret_cast<uintptr_t>(address) % 16 == 0;
  return aligned ? kSize : 1;
}

}  // namespace lamplighter
