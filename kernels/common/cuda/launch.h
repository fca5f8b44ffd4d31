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

// Whether kernels of the current device can start before the ones in front of them are done.
inline bool can_start_early() {
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major >= 9;
}

// Of a processor's memory on chip, the part that is shared memory for chained kernels: all of them ask for
// the same, because a new division waits for an empty processor. Three blocks of attention fit on an H200;
// the rest is cache, which loads need for data on its way.
constexpr unsigned kSharedPercent = 44;

// Whether `cluster` blocks of a kernel can run at the same time on the current device.
template <class Kernel>
bool runs_in_clusters(Kernel* kernel, unsigned cluster, unsigned threads, size_t shared_bytes) {
  int device = 0, has_clusters = 0, most = 0;
  const bool known = cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, device) == cudaSuccess;
  if (!known || has_clusters == 0) return false;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(cluster);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaOccupancyMaxActiveClusters(&most, kernel, &config) == cudaSuccess && most > 0;
}

// Queues a kernel that calls wait_for_earlier_kernels(), so that its start overlaps with the end of the
// kernel before it (programmatic dependent launch). `cluster`: blocks along x that run as a cluster.
template <class... Parameters>
void launch_clusters(unsigned cluster, void (*kernel)(Parameters...), dim3 grid, unsigned threads,
                     size_t shared_bytes, cudaStream_t stream, Parameters... arguments) {
  cudaLaunchAttribute attributes[3] = {};
  unsigned count = 0;
  attributes[count].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
  attributes[count++].val.sharedMemCarveout = kSharedPercent;
  if (cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {cluster, 1, 1};
  }
  if (can_start_early()) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <class... Parameters>
void launch_chained(void (*kernel)(Parameters...), dim3 grid, unsigned threads, size_t shared_bytes,
                    cudaStream_t stream, Parameters... arguments) {
  launch_clusters(1, kernel, grid, threads, shared_bytes, stream, arguments...);
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

// Elements of 16 bytes when `width` and all addresses allow it, else 1.
template <class T>
int pack_size(int64_t width, std::initializer_list<const void*> addresses) {
  constexpr int kSize = 16 / static_cast<int>(sizeof(T));
  bool aligned = width % kSize == 0;
  for (const void* address : addresses) aligned = aligned && reinterpret_cast<uintptr_t>(address) % 16 == 0;
  return aligned ? kSize : 1;
}

}  // namespace lamplighter
