#pragma once

#include "kernels/common/cuda/device.h"

// Clusters: blocks that run at the same time and read and write each other's shared memory (sm_90 and later).
// A cluster of one block is that block, on every device.
#if defined(__CUDACC__)

namespace lamplighter {

// The number of this block in its cluster.
__device__ __forceinline__ int cluster_rank() {
#if __CUDA_ARCH__ >= 900
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
#else
  return 0;
#endif
}

// A barrier of all threads of the cluster. What was written before it, in any block, is visible behind it.
__device__ __forceinline__ void sync_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
#else
  __syncthreads();
#endif
}

// The two halves of a barrier that orders no memory: between them a block does what needs no other one.
// Behind it all blocks of the cluster have started, so that their shared memory can be written.
__device__ __forceinline__ void announce_to_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// What lies in the shared memory of block `rank` where `own` lies in this one's.
template <class T>
__device__ __forceinline__ T* in_block(T* own, int rank) {
#if __CUDA_ARCH__ >= 900
  uint64_t address;
  asm("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(reinterpret_cast<uint64_t>(own)), "r"(rank));
  return reinterpret_cast<T*>(address);
#else
  return own;
#endif
}

}  // namespace lamplighter

#endif
