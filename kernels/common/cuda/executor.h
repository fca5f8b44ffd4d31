#pragma once

#include "kernels/common/cuda/device.h"
#include "kernels/common/executor.h"

// Loops over a row take several loads in flight.
#if defined(__CUDACC__)
#define LAMPLIGHTER_UNROLL _Pragma("unroll 4")
#else
#define LAMPLIGHTER_UNROLL
#endif

namespace lamplighter {

// What the threads of a block share for a BlockExecutor; declare one in __shared__ memory.
struct BlockStorage {
  double cells[kExecutorCells];
  double slots[2][32];  // one value of each warp
};

template <class T>
struct Prefixed {
  T before;
  T all;
};

// A CUDA block of kThreads threads as an executor. The order of sums depends on n and kThreads alone. Loops
// visit a row in steps of neighbouring elements, so that accesses to memory of either kind are whole lines
// and free of bank conflicts.
template <int kThreads>
class BlockExecutor {
 public:
  static constexpr bool kIsBlock = true;

  __device__ explicit BlockExecutor(BlockStorage* storage) : storage_(storage) {}

  template <class T>
  __device__ T* cells() {
    static_assert(sizeof(T) <= sizeof(double), "cells are at most as large as double");
    return reinterpret_cast<T*>(storage_->cells);
  }

  __device__ void sync() { __syncthreads(); }

  template <class F>
  __device__ void for_each(int n, F f) {
    LAMPLIGHTER_UNROLL
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) f(i);
    __syncthreads();
  }

  // Every warp by itself.
  template <class Holds>
  __device__ uint64_t mask(int n, Holds holds) {
    const int i = lane();
    const uint64_t low = __ballot_sync(kAll, i < n && holds(i));
    const uint64_t high = __ballot_sync(kAll, i + kLanes < n && holds(i + kLanes));
    return low | high << kLanes;
  }

  template <class T, class Map, class Op>
  __device__ T reduce(int n, T identity, Map map, Op op) {
    T value = identity;
    LAMPLIGHTER_UNROLL
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) value = op(value, map(i));
    value = over_warp(value, op, kLanes);
    const T* slots = share(value);
    return over_warp(slots[lane() % kWarps], op, kWarps);
  }

  template <class Map>
  __device__ int argmax(int n, Map map) {
    using T = decltype(map(0));
    const T best = reduce(n, map(0), map, [](T a, T b) { return b > a ? b : a; });
    const int found = reduce(
        n, n, [=](int i) { return map(i) == best ? i : n; }, [](int a, int b) { return b < a ? b : a; });
    return found < n ? found : 0;
  }

  // Each warp sums a segment; the one whose sum crosses the limit is divided in the same way, until a warp
  // holds it, one number in each lane.
  template <class T, class Map>
  __device__ Prefix<T> scan(int n, T limit, Map map) {
    Prefix<T> found = {0, 0};
    for (int end = n; end - found.index > kLanes;) {
      const int length = segment(end - found.index);
      const int first = found.index + warp() * length;
      const int last = min(end, first + length);
      T sum = 0;
      for (int i = first + lane(); i < last; i += kLanes) sum += map(i);
      const T* slots = share(over_warp(
          sum, [](T a, T b) { return a + b; }, kLanes));
      const int crossing = cross(lane() < kWarps ? slots[lane()] : T{0}, limit, found.before);
      if (crossing == kLanes) {
        found.index = n;
        __syncthreads();
        return found;
      }
      found.index += crossing * length;
      end = min(end, found.index + length);
    }
    const int i = found.index + lane();
    const int crossing = cross(i < n ? map(i) : T{0}, limit, found.before);
    found.index = crossing == kLanes ? n : found.index + crossing;
    __syncthreads();
    return found;
  }

  // cells: from cells(), zeros. Doubles are multiples of 2^-50 below 2^13.
  template <class T, class Bin, class Weight>
  __device__ void histogram(int n, T* cells, Bin bin, Weight weight) {
    LAMPLIGHTER_UNROLL
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) {
      const int cell = bin(i);
      if (cell >= 0) add(&cells[cell], weight(i));
    }
    __syncthreads();
    if constexpr (sizeof(T) == sizeof(double)) {
      for_each(kExecutorCells, [=](int i) {
        uint64_t sum;
        __builtin_memcpy(&sum, &cells[i], sizeof(sum));
        cells[i] = static_cast<double>(sum) * 0x1p-50;
      });
    }
  }

  // With one value of each thread: the sum of the values before this thread's, and of all.
  template <class T>
  __device__ Prefixed<T> prefix(T value) {
    const T through = inclusive(value);
    const T* sums = share(__shfl_sync(kAll, through, kLanes - 1));
    const T warps = inclusive(lane() < kWarps ? sums[lane()] : T{0});
    const T before = __shfl_sync(kAll, warps, warp() > 0 ? warp() - 1 : 0);
    return {through - value + (warp() > 0 ? before : T{0}), __shfl_sync(kAll, warps, kLanes - 1)};
  }

  // Each warp lists a segment.
  template <class Keep, class Index>
  __device__ int compact(int n, Keep keep, Index* out) {
    const int length = segment(n);
    const int first = min(n, warp() * length);
    const int last = min(n, first + length);
    int count = 0;
    for (int begin = first; begin < last; begin += kLanes) {
      count += __popc(__ballot_sync(kAll, begin + lane() < last && keep(begin + lane())));
    }
    const int* counts = share(count);
    const int through = inclusive(lane() < kWarps ? counts[lane()] : 0);
    int at = __shfl_sync(kAll, through, warp()) - count;
    const unsigned below = (1U << lane()) - 1U;
    for (int begin = first; begin < last; begin += kLanes) {
      const bool kept = begin + lane() < last && keep(begin + lane());
      const unsigned all = __ballot_sync(kAll, kept);
      if (kept) out[at + __popc(all & below)] = begin + lane();
      at += __popc(all);
    }
    __syncthreads();
    return __shfl_sync(kAll, through, kLanes - 1);
  }

 private:
  static constexpr int kLanes = 32;
  static constexpr int kWarps = kThreads / kLanes;
  static constexpr unsigned kAll = 0xFFFFFFFFU;
  static_assert(kWarps >= 2 && kWarps <= kLanes && (kWarps & (kWarps - 1)) == 0,
                "warps: a power of two from 2 to 32; scan divides what one warp holds");

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / kLanes; }

  __device__ static void add(uint32_t* cell, uint32_t weight) { atomicAdd(cell, weight); }

  // As an integer of two words: shared memory adds words at once, larger numbers by trial and error.
  __device__ static void add(double* cell, double weight) {
    const auto grid = static_cast<uint64_t>(weight * 0x1p50);
    const auto low = static_cast<uint32_t>(grid);
    auto* words = reinterpret_cast<uint32_t*>(cell);
    const uint32_t before = atomicAdd(words, low);
    const uint32_t high = static_cast<uint32_t>(grid >> 32) + (before + low < before ? 1U : 0U);
    if (high != 0) atomicAdd(words + 1, high);
  }

  // Elements of each warp when they share n: a multiple of kLanes.
  __device__ static int segment(int n) { return (n + kThreads - 1) / kThreads * kLanes; }

  // The values of all warps, each given by its first lane. The two buffers take turns: when one is written
  // again, the barrier of the other lies between.
  template <class T>
  __device__ const T* share(T value) {
    T* slots = reinterpret_cast<T*>(storage_->slots[turn_]);
    turn_ ^= 1;
    if (lane() == 0) slots[warp()] = value;
    __syncthreads();
    return slots;
  }

  // All lanes get the same bits, because op commutes. `width`: the lanes of a group, a power of two.
  template <class T, class Op>
  __device__ static T over_warp(T value, Op op, int width) {
    for (int step = width / 2; step > 0; step /= 2) value = op(value, __shfl_xor_sync(kAll, value, step));
    return value;
  }

  // The sum of the values up to this lane.
  template <class T>
  __device__ static T inclusive(T value) {
    for (int step = 1; step < kLanes; step *= 2) {
      const T other = __shfl_up_sync(kAll, value, static_cast<unsigned>(step));
      if (lane() >= step) value += other;
    }
    return value;
  }

  // The first lane at which `before` and the values up to it exceed the limit, or kLanes; adds the values of
  // the lanes before to `before`.
  template <class T>
  __device__ static int cross(T value, T limit, T& before) {
    const T through = before + inclusive(value);
    const unsigned over = __ballot_sync(kAll, through > limit);
    if (over == 0) {
      before = __shfl_sync(kAll, through, kLanes - 1);
      return kLanes;
    }
    const int first = __ffs(static_cast<int>(over)) - 1;
    before = __shfl_sync(kAll, through - value, first);
    return first;
  }

  BlockStorage* storage_;
  int turn_ = 0;
};

}  // namespace lamplighter
