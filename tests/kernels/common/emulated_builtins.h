#pragma once

// CUDA's built-in variables and functions for emulated_device.h, under their own names.

#define LAMPLIGHTER_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

using std::max;
using std::min;

inline lamplighter::emulated::ThreadIndex threadIdx;
inline lamplighter::emulated::BlockIndex& blockIdx = lamplighter::emulated::block_index;
inline lamplighter::emulated::Size3& blockDim = lamplighter::emulated::block_size;
inline lamplighter::emulated::Size3& gridDim = lamplighter::emulated::grid_size;

inline void __syncthreads(LAMPLIGHTER_SITE) {
  lamplighter::emulated::Block::active().barrier({file, line});
}

inline void __syncwarp(unsigned mask = ~0U, LAMPLIGHTER_SITE) {
  char none = 0;
  lamplighter::emulated::meet(mask, {file, line}, none, [](char**) {});
}

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, LAMPLIGHTER_SITE) {
  return lamplighter::emulated::exchange(mask, {file, line}, value,
                                         [=](int own) { return own / width * width + lane % width; });
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, LAMPLIGHTER_SITE) {
  return lamplighter::emulated::exchange(mask, {file, line}, value, [=](int own) {
    return (own ^ bits) / width <= own / width ? own ^ bits : own;
  });
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned step, int width = 32, LAMPLIGHTER_SITE) {
  return lamplighter::emulated::exchange(mask, {file, line}, value, [=](int own) {
    const int from = own - static_cast<int>(step);
    return from >= own / width * width ? from : own;
  });
}

inline unsigned __ballot_sync(unsigned mask, int predicate, LAMPLIGHTER_SITE) {
  unsigned value = predicate != 0 ? 1U : 0U;
  lamplighter::emulated::meet(mask, {file, line}, value, [](unsigned** lanes) {
    unsigned ballot = 0;
    for (int i = 0; i < lamplighter::emulated::kLanes; ++i) {
      if (lanes[i] != nullptr) ballot |= *lanes[i] << i;
    }
    for (int i = 0; i < lamplighter::emulated::kLanes; ++i) {
      if (lanes[i] != nullptr) *lanes[i] = ballot;
    }
  });
  return value;
}

// Fibres never switch inside these.
template <class T, class U, class F>
T lamplighter_exchange(T* at, U value, F f) {
  const T old = *at;
  *at = f(old, static_cast<T>(value));
  return old;
}
template <class T, class U>
T atomicAdd(T* at, U value) {
  return lamplighter_exchange(at, value, [](T a, T b) { return static_cast<T>(a + b); });
}
template <class T, class U>
T atomicOr(T* at, U value) {
  return lamplighter_exchange(at, value, [](T a, T b) { return static_cast<T>(a | b); });
}

inline void __threadfence() {}  // blocks run one after the other

inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fsub_rn(float a, float b) {
  return a - b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline double __dmul_rn(double a, double b) {
  return a * b;
}

inline float __int_as_float(int bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline int __popc(unsigned bits) {
  return __builtin_popcount(bits);
}
inline int __popcll(unsigned long long bits) {
  return __builtin_popcountll(bits);
}
inline int __ffs(int bits) {
  return __builtin_ffs(bits);
}
inline int __ffsll(long long bits) {
  return __builtin_ffsll(bits);
}

template <class T>
T __ldg(const T* at) {
  return *at;
}

#undef LAMPLIGHTER_SITE
