#pragma once

// Marks functions that CPU and CUDA kernels share; in .cu files they are for device code alone. Always
// inlined: the CPU kernels are compiled for several instruction sets, and a shared out-of-line copy could
// hold instructions that this CPU lacks.
#if defined(__CUDACC__)
#define LAMPLIGHTER_INLINE __device__ __forceinline__
#else
#define LAMPLIGHTER_INLINE inline __attribute__((always_inline))
#endif
