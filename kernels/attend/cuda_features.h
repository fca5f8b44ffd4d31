#pragma once

#include "kernels/attend/cuda_rows.h"

// Eight features of a head, 16 bytes that are loaded and stored at once.
namespace lamplighter {
namespace {

constexpr int kFeatures = 8;

// Four words, the earlier one of two features in the low half.
template <class T>
struct Features {
  uint32_t word[kFeatures / 2];

  __device__ static Features load(const T* from) {
    const auto words = load_pack<uint32_t, 4>(reinterpret_cast<const uint32_t*>(from));
    return {{words.element[0], words.element[1], words.element[2], words.element[3]}};
  }
  __device__ void store(T* to) const {
    store_pack(reinterpret_cast<uint32_t*>(to), Pack<uint32_t, 4>{{word[0], word[1], word[2], word[3]}});
  }
  __device__ __forceinline__ T operator[](int i) const {
    return T{static_cast<uint16_t>(i % 2 == 0 ? word[i / 2] : word[i / 2] >> 16)};
  }
};

// Two elements as one word.
template <class T>
__device__ __forceinline__ uint32_t pair_bits(T first, T second) {
  return uint32_t{first.bits} | uint32_t{second.bits} << 16;
}

// `features` rotated by their cosines and sines.
template <class T>
__device__ __forceinline__ Features<T> turned(const Features<T>& features,
                                              const Pack<float, kFeatures>& angles) {
  Features<T> result;
#pragma unroll
  for (int i = 0; i < kFeatures; i += 2) {
    const auto pair = rotate(features[i], features[i + 1], angles.element + i);
    result.word[i / 2] = pair_bits(pair.first, pair.second);
  }
  return result;
}

}  // namespace
}  // namespace lamplighter
