#pragma once

#include "kernels/common/cuda/executor.h"
#include "kernels/common/cuda/numbers.h"
#include "kernels/elementwise/elementwise.h"

// Kernels of elementwise.h on CUDA.
namespace lamplighter {
namespace {

constexpr int kElementwiseThreads = 256;

// One block per row, which it reads once: between the sum of squares and the scaling the row stays in shared
// memory when it fits. Thread t owns the packs t, t + kElementwiseThreads, ... in both passes, so it reads
// back what it wrote.
template <class T, int kPack>
__global__ void __launch_bounds__(kElementwiseThreads) rms_norm_kernel(RmsNormArgs args) {
  let_next_kernel_start();
  wait_for_earlier_kernels();
  alignas(16) __shared__ BlockStorage storage;
  BlockExecutor<kElementwiseThreads> executor(&storage);
  const int64_t start = int64_t{blockIdx.x} * args.width;
  const T* x = static_cast<const T*>(args.x) + start;
  T* residual = args.residual == nullptr ? nullptr : static_cast<T*>(args.residual) + start;
  const T* weight = static_cast<const T*>(args.weight);
  T* out = static_cast<T*>(args.out) + start;
  constexpr int64_t kKept = kExecutorCells * static_cast<int64_t>(sizeof(double) / sizeof(T));
  T* kept = args.width <= kKept ? reinterpret_cast<T*>(executor.template cells<double>()) : nullptr;
  const auto square_sum = [=](int pack) {
    auto values = load_pack<T, kPack>(x + pack * kPack);
    if (residual != nullptr) {
      const auto old = load_pack<T, kPack>(residual + pack * kPack);
      for (int j = 0; j < kPack; ++j) {
        values.element[j] = narrow<T>(widen(old.element[j]) + widen(values.element[j]));
      }
      store_pack(residual + pack * kPack, values);
    }
    if (kept != nullptr) store_pack(kept + pack * kPack, values);
    float sum = 0.0F;
    for (int j = 0; j < kPack; ++j) {
      const float value = widen(values.element[j]);
      sum += value * value;
    }
    return sum;
  };
  const int packs = static_cast<int>(args.width / kPack);
  const float sum = executor.reduce(packs, 0.0F, square_sum, [](float a, float b) { return a + b; });
  const float scale = 1.0F / sqrtf(sum / static_cast<float>(args.width) + args.eps);
  const T* row = kept != nullptr ? kept : residual == nullptr ? x : residual;
  for (int pack = static_cast<int>(threadIdx.x); pack < packs; pack += kElementwiseThreads) {
    auto values = load_pack<T, kPack>(row + pack * kPack);
    const auto weights = load_pack<T, kPack>(weight + pack * kPack);
    for (int j = 0; j < kPack; ++j) {
      const float normed = rounded<T>(widen(values.element[j]) * scale);
      values.element[j] = narrow<T>(normed * widen(weights.element[j]));
    }
    store_pack(out + pack * kPack, values);
  }
}

template <class T, int kPack>
__global__ void __launch_bounds__(kElementwiseThreads) silu_mul_kernel(SiluMulArgs args) {
  let_next_kernel_start();
  wait_for_earlier_kernels();
  const int64_t packs = args.width / kPack;
  const int64_t i = int64_t{blockIdx.x} * kElementwiseThreads + threadIdx.x;
  if (i >= args.rows * packs) return;
  const int64_t row = i / packs;
  const int64_t column = i % packs * kPack;
  const T* gate = static_cast<const T*>(args.gate_up) + row * 2 * args.width + column;
  auto values = load_pack<T, kPack>(gate);
  const auto up = load_pack<T, kPack>(gate + args.width);
  for (int j = 0; j < kPack; ++j) {
    const float z = widen(values.element[j]);
    const float silu = rounded<T>(z / (1.0F + expf(-z)));
    values.element[j] = narrow<T>(silu * widen(up.element[j]));
  }
  store_pack(static_cast<T*>(args.out) + row * args.width + column, values);
}

template <class T, int kPack>
__global__ void __launch_bounds__(kElementwiseThreads) gelu_kernel(GeluArgs args) {
  let_next_kernel_start();
  wait_for_earlier_kernels();
  const int64_t i = int64_t{blockIdx.x} * kElementwiseThreads + threadIdx.x;
  if (i >= args.rows * args.width / kPack) return;
  auto values = load_pack<T, kPack>(static_cast<const T*>(args.x) + i * kPack);
  for (int j = 0; j < kPack; ++j) {
    const float z = widen(values.element[j]);
    values.element[j] = narrow<T>(0.5F * z * (1.0F + erff(z * 0.70710678F)));
  }
  store_pack(static_cast<T*>(args.out) + i * kPack, values);
}

// One warp per head of a row; lane l owns the packs l, l + 32, ... of it in every pass.
template <class T, int kPack>
__global__ void __launch_bounds__(kElementwiseThreads) norm_heads_kernel(NormHeadsArgs args) {
  let_next_kernel_start();
  wait_for_earlier_kernels();
  constexpr int kLanes = 32;
  constexpr unsigned kAll = 0xFFFFFFFFU;
  const int64_t item = (int64_t{blockIdx.x} * kElementwiseThreads + threadIdx.x) / kLanes;
  if (item >= args.rows * args.heads) return;
  const int64_t first = item % args.heads * args.head_dim;
  T* x = static_cast<T*>(args.values) + item / args.heads * args.width + first;
  const T* weight = static_cast<const T*>(args.weight) + first;
  const T* bias = static_cast<const T*>(args.bias) + first;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int packs = static_cast<int>(args.head_dim / kPack);
  const auto sum_of = [=](auto term) {
    float sum = 0.0F;
    for (int pack = lane; pack < packs; pack += kLanes) {
      const auto values = load_pack<T, kPack>(x + pack * kPack);
      for (int j = 0; j < kPack; ++j) sum += term(widen(values.element[j]));
    }
    for (int step = kLanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(kAll, sum, step);
    return sum;
  };
  const float count = static_cast<float>(args.head_dim);
  const float mean = sum_of([](float value) { return value; }) / count;
  const float variance = sum_of([=](float value) { return (value - mean) * (value - mean); }) / count;
  const float scale = 1.0F / sqrtf(variance + args.eps);
  for (int pack = lane; pack < packs; pack += kLanes) {
    auto values = load_pack<T, kPack>(x + pack * kPack);
    const auto weights = load_pack<T, kPack>(weight + pack * kPack);
    const auto biases = load_pack<T, kPack>(bias + pack * kPack);
    for (int j = 0; j < kPack; ++j) {
      const float normed = rounded<T>((widen(values.element[j]) - mean) * scale);
      values.element[j] = narrow<T>(normed * widen(weights.element[j]) + widen(biases.element[j]));
    }
    store_pack(x + pack * kPack, values);
  }
}

}  // namespace
}  // namespace lamplighter
