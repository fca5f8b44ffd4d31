#pragma once

#include "kernels/executor.h"

namespace lamplighter {

// What the threads of a block share for a BlockExecutor; declare one in __shared__ memory.
struct BlockStorage {
  double cells[kExecutorCells];
  double slots[32];  // one value of each warp
  double before;
  int index;
};

// A CUDA block of kThreads threads as an executor. The order of sums depends on n and kThreads alone.
template <int kThreads>
class BlockExecutor {
 public:
  __device__ explicit BlockExecutor(BlockStorage* storage) : storage_(storage) {}

  template <class T>
  __device__ T* cells() {
    static_assert(sizeof(T) <= sizeof(double), "cells are at most as large as double");
    return reinterpret_cast<T*>(storage_->cells);
  }

  __device__ void sync() { __syncthreads(); }

  template <class F>
  __device__ void for_each(int n, F f) {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) f(i);
    __syncthreads();
  }

  template <class T, class Map, class Op>
  __device__ T reduce(int n, T identity, Map map, Op op) {
    T value = identity;
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) value = op(value, map(i));
    T* slots = reinterpret_cast<T*>(storage_->slots);
    value = over_warp(value, op, kLanes);
    if (lane() == 0) slots[warp()] = value;
    __syncthreads();
    value = over_warp(slots[lane() % kWarps], op, kWarps);
    __syncthreads();
    return value;
  }

  template <class Map>
  __device__ int argmax(int n, Map map) {
    using T = decltype(map(0));
    const T best = reduce(n, map(0), map, [](T a, T b) { return b > a ? b : a; });
    return reduce(
        n, n, [=](int i) { return map(i) == best ? i : n; }, [](int a, int b) { return b < a ? b : a; });
  }

  // Thread t sums the t-th of kThreads equal parts; the one whose part crosses the limit walks through it.
  template <class T, class Map>
  __device__ Prefix<T> scan(int n, T limit, Map map) {
    const int part = (n + kThreads - 1) / kThreads;
    const int begin = min(n, static_cast<int>(threadIdx.x) * part);
    const int end = min(n, begin + part);
    T* found = reinterpret_cast<T*>(&storage_->before);
    if (threadIdx.x == 0) storage_->index = n;
    T sum = 0;
    for (int i = begin; i < end; ++i) sum += map(i);
    const T through = inclusive_sum(sum);
    T before = through - sum;
    if (threadIdx.x == kThreads - 1 && !(through > limit)) *found = through;
    if (before <= limit && through > limit) {
      int i = begin;
      for (T next = before + map(i); i + 1 < end && !(next > limit); next = before + map(i)) {
        before = next;
        ++i;
      }
      storage_->index = i;
      *found = before;
    }
    __syncthreads();
    const Prefix<T> result = {storage_->index, *found};
    __syncthreads();
    return result;
  }

  template <class T, class Bin, class Weight>
  __device__ void histogram(int n, T* cells, Bin bin, Weight weight) {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) {
      const int cell = bin(i);
      if (cell >= 0) atomicAdd(&cells[cell], weight(i));
    }
    __syncthreads();
  }

  // Thread t lists the t-th of kThreads equal parts.
  template <class Keep, class Index>
  __device__ int compact(int n, Keep keep, Index* out) {
    const int part = (n + kThreads - 1) / kThreads;
    const int begin = min(n, static_cast<int>(threadIdx.x) * part);
    const int end = min(n, begin + part);
    int count = 0;
    for (int i = begin; i < end; ++i) count += keep(i) ? 1 : 0;
    const int through = inclusive_sum(count);
    if (threadIdx.x == kThreads - 1) storage_->index = through;
    int at = through - count;
    for (int i = begin; i < end; ++i) {
      if (keep(i)) out[at++] = i;
    }
    __syncthreads();
    const int total = storage_->index;
    __syncthreads();
    return total;
  }

 private:
  static constexpr int kLanes = 32;
  static constexpr int kWarps = kThreads / kLanes;
  static constexpr unsigned kAll = 0xFFFFFFFFU;
  static_assert(kWarps >= 1 && kWarps <= kLanes && (kWarps & (kWarps - 1)) == 0,
                "warps: a power of two up to 32");

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / kLanes; }

  // All lanes get the same bits, because op commutes. `width`: a power of two; groups of so many lanes.
  template <class T, class Op>
  __device__ static T over_warp(T value, Op op, int width) {
    for (int step = width / 2; step > 0; step /= 2) value = op(value, __shfl_xor_sync(kAll, value, step));
    return value;
  }

  template <class T>
  __device__ T inclusive_sum(T value) {
    T* slots = reinterpret_cast<T*>(storage_->slots);
    for (int step = 1; step < kLanes; step *= 2) {
      const T other = __shfl_up_sync(kAll, value, static_cast<unsigned>(step));
      if (lane() >= step) value += other;
    }
    if (lane() == kLanes - 1) slots[warp()] = value;
    __syncthreads();
    for (int w = 0; w < warp(); ++w) value += slots[w];
    __syncthreads();
    return value;
  }

  BlockStorage* storage_;
};

}  // namespace lamplighter
