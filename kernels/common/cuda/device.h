#pragma once

#include <cstdint>

#include "kernels/common/numbers.h"

// What device code needs beyond CUDA's C++: instructions of sm_80 and later without a built-in function, and
// conversions. Tests bring a version of their own and compile device code without CUDA.
#if defined(__CUDACC__)

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace lamplighter {

__device__ __forceinline__ uint16_t bfloat16_bits(float value) {  // to the nearest, ties to even
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

__device__ __forceinline__ uint16_t float16_bits(float value) {
  return __half_as_ushort(__float2half_rn(value));
}

// 2^x within 2 units in the last place, 0 where the result would be subnormal.
__device__ __forceinline__ float exp2_approximate(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// The dynamic shared memory of the block, a multiple of 128.
__device__ __forceinline__ char* shared_memory() {
  extern __shared__ __align__(128) char memory[];
  return memory;
}

__device__ __forceinline__ uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// Starts to copy 16 bytes from global to dynamic shared memory past the first-level cache; zeros instead when
// not `valid` (then `global` is not read, but has to be an address).
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(valid ? 16 : 0)
               : "memory");
}

// The copies that this thread started since the last commit are one group.
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all groups of this thread but the latest kOpen have landed. Other threads see them after a
// barrier.
template <int kOpen>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

// Kernels that launch_chained() queues start while the one before them still runs. A block may read what no
// kernel of the stream writes, weights, then waits; all of its other work comes after. Every block of the
// kernel has to wait: the next one relies on it. Before sm_90 there is nothing to wait for.
__device__ __forceinline__ void wait_for_earlier_kernels() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel start once all blocks of this one have come here.
__device__ __forceinline__ void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// 16 bytes that are read once. Not reordered with wait_for_earlier_kernels(), as reads of __ldg() are.
__device__ __forceinline__ void load_once(uint32_t (&to)[4], const void* global) {
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "l"(global)
               : "memory");
}

// Products of two pairs of bf16, each rounded to the nearest.
__device__ __forceinline__ uint32_t multiply_pairs(uint32_t a, uint32_t b) {
  const auto pair = [](uint32_t bits) {
    return __halves2bfloat162(__ushort_as_bfloat16(static_cast<uint16_t>(bits)),
                              __ushort_as_bfloat16(static_cast<uint16_t>(bits >> 16)));
  };
  const __nv_bfloat162 product = __hmul2(pair(a), pair(b));
  return uint32_t{__bfloat16_as_ushort(product.x)} | uint32_t{__bfloat16_as_ushort(product.y)} << 16;
}

// Four 8 x 8 matrices of 16-bit elements from shared memory. Lane 8 i + r names row r of matrix i, 16 bytes.
// to[i] of lane l: elements 2 (l % 4) and + 1 of row l / 4 of matrix i.
__device__ __forceinline__ void load_matrices(uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}

// The same of the transposed matrices.
__device__ __forceinline__ void load_transposed(uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}

// sum += a b of a 16 x 16 and a 16 x 8 matrix. With g = lane / 4, t = lane % 4, in pairs of elements:
// a[0..3]: rows g, g + 8, g, g + 8 at columns 2 t, 2 t, 2 t + 8, 2 t + 8; b0, b1: rows 2 t and 2 t + 8 (and
// the next) of column g; sum: (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1).
__device__ __forceinline__ void multiply_add(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                             uint32_t b1, BFloat16Bits) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void multiply_add(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0,
                                             uint32_t b1, Float16Bits) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace lamplighter

#elif !defined(LAMPLIGHTER_EMULATED_DEVICE)
#error "device code: for nvcc, or for tests that emulate a device"
#endif
