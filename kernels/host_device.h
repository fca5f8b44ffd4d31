#pragma once

// Functions that a CPU thread and a CUDA thread both run. Always inlined: the CPU kernels are compiled for
// several instruction sets, and a shared out-of-line copy could hold instructions that this CPU lacks.
#if defined(__CUDACC__)
#define LAMPLIGHTER_INLINE __host__ __device__ __forceinline__
#else
#define LAMPLIGHTER_INLINE inline __attribute__((always_inline))
#endif
