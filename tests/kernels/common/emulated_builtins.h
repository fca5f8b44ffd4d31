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

inline void __threadfence() {}
inline void __threadfence_block() {}

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

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned step, int width = 32, LAMPLIGHTER_SITE) {
  return lamplighter::emulated::exchange(mask, {file, line}, value, [=](int own) {
    const int from = own + static_cast<int>(step);
    return from < (own / width + 1) * width ? from : own;
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

inline int __any_sync(unsigned mask, int predicate, LAMPLIGHTER_SITE) {
  return __ballot_sync(mask, predicate, file, line) != 0 ? 1 : 0;
}

inline int __all_sync(unsigned mask, int predicate, LAMPLIGHTER_SITE) {
  return __ballot_sync(mask, predicate, file, line) == mask ? 1 : 0;
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
T atomicMax(T* at, U value) {
  return lamplighter_exchange(at, value, [](T a, T b) { return b > a ? b : a; });
}
template <class T, class U>
T atomicMin(T* at, U value) {
  return lamplighter_exchange(at, value, [](T a, T b) { return b < a ? b : a; });
}
template <class T, class U>
T atomicOr(T* at, U value) {
  return lamplighter_exchange(at, value, [](T a, T b) { return static_cast<T>(a | b); });
}
template <class T, class U>
T atomicExch(T* at, U value) {
  return lamplighter_exchange(at, value, [](T, T b) { return b; });
}
template <class T, class U, class V>
T atomicCAS(T* at, U expected, V value) {
  return lamplighter_exchange(at, value, [=](T a, T b) { return a == static_cast<T>(expected) ? b : a; });
}

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
inline double __dadd_rn(double a, double b) {
  return a + b;
}
inline float __expf(float x) {
  return std::exp(x);
}
inline float __logf(float x) {
  return std::log(x);
}

inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline int __float_as_int(float value) {
  return static_cast<int>(__float_as_uint(value));
}
inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline float __int_as_float(int bits) {
  return __uint_as_float(static_cast<unsigned>(bits));
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
inline int __clz(int bits) {
  return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits));
}
inline int __clzll(long long bits) {
  return bits == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(bits));
}

template <class T>
T __ldg(const T* at) {
  return *at;
}

#undef LAMPLIGHTER_SITE
