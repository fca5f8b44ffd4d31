#pragma once

#include <cstdint>

#include "kernels/common/executor.h"
#include "kernels/common/kernel_inline.h"
#if defined(__AVX512F__)
#include "kernels/common/simd_avx512.h"  // includes the intrinsics in a way that the compiler accepts
#endif

namespace lamplighter {

// One CPU thread. `Tag` is a type local to the translation unit, so that every instruction set's file has its
// own copy of the code. Sums over fixed lanes: equal bits for every instruction set.
template <class Tag>
class CpuExecutor {
 public:
  static constexpr bool kIsBlock = false;

  explicit CpuExecutor(void* cells) : cells_(cells) {}

  template <class T>
  T* cells() {
    static_assert(sizeof(T) <= sizeof(double), "cells are at most as large as double");
    return static_cast<T*>(cells_);
  }

  void sync() {}

  template <class F>
  void for_each(int n, F f) {
#pragma omp simd
    for (int i = 0; i < n; ++i) f(i);
  }

  template <class Holds>
  uint64_t mask(int n, Holds holds) {
    uint64_t bits = 0;
    for (int i = 0; i < n; ++i) bits |= static_cast<uint64_t>(holds(i)) << i;
    return bits;
  }

  template <class T, class Map, class Op>
  T reduce(int n, T identity, Map map, Op op) {
    T lane[kLanes];
    for (int j = 0; j < kLanes; ++j) lane[j] = identity;
    int i = 0;
    for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
      for (int j = 0; j < kLanes; ++j) lane[j] = op(lane[j], map(i + j));
    }
    for (int j = 0; i + j < n; ++j) lane[j] = op(lane[j], map(i + j));
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int j = 0; j < width; ++j) lane[j] = op(lane[j], lane[j + width]);
    }
    return lane[0];
  }

  template <class Map>
  int argmax(int n, Map map) {
    using T = decltype(map(0));
    const T best = reduce(n, map(0), map, [](T a, T b) { return b > a ? b : a; });
    for (int i = 0; i < n; ++i) {
      if (map(i) == best) return i;
    }
    return 0;
  }

  template <class T, class Map>
  Prefix<T> scan(int n, T limit, Map map) {
    constexpr int kBlock = 4 * kLanes;
    T before = 0;
    int i = 0;
    for (; i + kBlock <= n; i += kBlock) {
      const T sum =
          before + reduce(
                       kBlock, T{0}, [=](int j) { return map(i + j); }, [](T a, T b) { return a + b; });
      if (sum > limit) break;
      before = sum;
    }
    for (; i < n; ++i) {
      const T sum = before + map(i);
      if (sum > limit) break;
      before = sum;
    }
    return {i, before};
  }

  template <class T, class Bin, class Weight>
  void histogram(int n, T* cells, Bin bin, Weight weight) {
    int i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      int bins[kLanes];
      int largest = -1;
#pragma omp simd reduction(max : largest)
      for (int j = 0; j < kLanes; ++j) {
        bins[j] = bin(i + j);
        largest = bins[j] > largest ? bins[j] : largest;
      }
      if (largest < 0) continue;
      for (int j = 0; j < kLanes; ++j) {
        if (bins[j] >= 0) cells[bins[j]] += weight(i + j);
      }
    }
    for (; i < n; ++i) {
      if (bin(i) >= 0) cells[bin(i)] += weight(i);
    }
  }

  template <class Keep, class Index>
  int compact(int n, Keep keep, Index* out) {
    int count = 0;
    int i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      uint32_t kept = 0;
#pragma omp simd reduction(| : kept)
      for (int j = 0; j < kLanes; ++j) kept |= static_cast<uint32_t>(keep(i + j)) << j;
      count += list_bits(kept, i, out + count);
    }
    for (; i < n; ++i) {
      if (keep(i)) out[count++] = i;
    }
    return count;
  }

 private:
  static constexpr int kLanes = 16;

  // Writes first + j for every bit j that is set; returns their number. May write all 16 positions.
  template <class Index>
  static int list_bits(uint32_t bits, int first, Index* out) {
#if defined(__AVX512F__)
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i indices = _mm512_add_epi32(lanes, _mm512_set1_epi32(first));
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits), indices));
    return __builtin_popcount(bits);
#else
    int count = 0;
    for (; bits != 0; bits &= bits - 1) out[count++] = first + __builtin_ctz(bits);
    return count;
#endif
  }

  void* cells_;
};

// Scratch memory behind the cells of a CpuExecutor.
template <class T>
LAMPLIGHTER_INLINE T* after_cells(void* scratch) {
  return reinterpret_cast<T*>(static_cast<double*>(scratch) + kExecutorCells);
}

}  // namespace lamplighter
