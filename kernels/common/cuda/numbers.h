#pragma once

#include "kernels/common/cuda/device.h"
#include "kernels/common/numbers.h"

// Conversions and vector accesses of the .cu files.
namespace lamplighter {

template <class T>
__device__ __forceinline__ T narrow(float value);  // rounds to the nearest, ties to even

template <>
__device__ __forceinline__ float narrow<float>(float value) {
  return value;
}

template <>
__device__ __forceinline__ BFloat16Bits narrow<BFloat16Bits>(float value) {
  return {bfloat16_bits(value)};
}

template <>
__device__ __forceinline__ Float16Bits narrow<Float16Bits>(float value) {
  return {float16_bits(value)};
}

template <class T>
__device__ __forceinline__ float rounded(float value) {
  return widen(narrow<T>(value));
}

// kSize elements that are loaded and stored at once; addresses are multiples of sizeof(Pack).
template <class T, int kSize>
struct alignas(sizeof(T) * kSize) Pack {
  T element[kSize];
};

template <class T, int kSize>
__device__ __forceinline__ Pack<T, kSize> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, kSize>*>(from);
}

template <class T, int kSize>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, kSize>& pack) {
  *reinterpret_cast<Pack<T, kSize>*>(to) = pack;
}

}  // namespace lamplighter
