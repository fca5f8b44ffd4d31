#pragma once

// Marks inline functions that the host and CUDA devices share. On the host always inlined, because the CPU
// kernels are compiled for several instruction sets: see kernels/common/kernel_inline.h.
#if defined(__CUDACC__)
#define LAMPLIGHTER_HOST_DEVICE __host__ __device__
#else
#define LAMPLIGHTER_HOST_DEVICE __attribute__((always_inline))
#endif
