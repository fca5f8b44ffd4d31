#pragma once

#include <cstdint>

#include "kernels/elementwise.h"
#include "kernels/simd_exp.h"

namespace lamplighter {
namespace {

// Kernels of elementwise.h over V, one of the vector vocabularies of simd_*.h. T = float or uint16_t (bf16).

// Sum of squares of a row: lanes over features, halves of the row's vectors in two chains, then the lanes.
template <typename V, typename T>
float sum_of_squares(const T* row, int64_t width) {
  auto first = V::zero();
  auto second = V::zero();
  int64_t i = 0;
  for (; i + 2 * V::kLanes <= width; i += 2 * V::kLanes) {
    const auto a = V::load(row + i);
    const auto b = V::load(row + i + V::kLanes);
    first = V::fma(a, a, first);
    second = V::fma(b, b, second);
  }
  for (; i < width; i += V::kLanes) {
    const auto a = width - i < V::kLanes ? V::load(row + i, width - i) : V::load(row + i);
    first = V::fma(a, a, first);
  }
  return V::sum(V::add(first, second));
}

template <typename V, typename T>
void add_into(T* residual, const T* x, int64_t width) {
  int64_t i = 0;
  for (; i + V::kLanes <= width; i += V::kLanes) {
    V::store(residual + i, V::add(V::load(residual + i), V::load(x + i)));
  }
  if (i < width) {
    const int64_t n = width - i;
    V::store(residual + i, V::add(V::load(residual + i, n), V::load(x + i, n)), n);
  }
}

template <typename V, typename T>
void rms_norm_rows(const RmsNormArgs& args, int64_t begin, int64_t end) {
  const int64_t width = args.width;
  const T* weight = static_cast<const T*>(args.weight);
  for (int64_t r = begin; r < end; ++r) {
    const T* row = static_cast<const T*>(args.x) + r * width;
    T* out = static_cast<T*>(args.out) + r * width;
    if (args.residual != nullptr) {
      T* residual = static_cast<T*>(args.residual) + r * width;
      add_into<V>(residual, row, width);
      row = residual;
    }
    const float mean = sum_of_squares<V>(row, width) / static_cast<float>(width);
    const auto scale = V::set(1.0F / __builtin_sqrtf(mean + args.eps));
    int64_t i = 0;
    for (; i + V::kLanes <= width; i += V::kLanes) {
      const auto y = V::rounded(V::mul(V::load(row + i), scale), T{});
      V::store(out + i, V::mul(y, V::load(weight + i)));
    }
    if (i < width) {
      const int64_t n = width - i;
      const auto y = V::rounded(V::mul(V::load(row + i, n), scale), T{});
      V::store(out + i, V::mul(y, V::load(weight + i, n)), n);
    }
  }
}

template <typename V>
typename V::F silu(typename V::F z) {
  const auto e = vector_exp<V>(V::sub(V::zero(), z));
  return V::div(z, V::add(V::set(1.0F), e));
}

template <typename V, typename T>
void silu_mul_rows(const SiluMulArgs& args, int64_t begin, int64_t end) {
  const int64_t width = args.width;
  for (int64_t r = begin; r < end; ++r) {
    const T* gate = static_cast<const T*>(args.gate_up) + r * 2 * width;
    const T* up = gate + width;
    T* out = static_cast<T*>(args.out) + r * width;
    int64_t i = 0;
    for (; i + V::kLanes <= width; i += V::kLanes) {
      const auto g = V::rounded(silu<V>(V::load(gate + i)), T{});
      V::store(out + i, V::mul(g, V::load(up + i)));
    }
    if (i < width) {
      const int64_t n = width - i;
      const auto g = V::rounded(silu<V>(V::load(gate + i, n)), T{});
      V::store(out + i, V::mul(g, V::load(up + i, n)), n);
    }
  }
}

template <typename V>
void rms_norm_on(const RmsNormArgs& args, int64_t begin, int64_t end) {
  if (args.type == ElementType::kFloat32) {
    rms_norm_rows<V, float>(args, begin, end);
  } else {
    rms_norm_rows<V, uint16_t>(args, begin, end);
  }
}

template <typename V>
void silu_mul_on(const SiluMulArgs& args, int64_t begin, int64_t end) {
  if (args.type == ElementType::kFloat32) {
    silu_mul_rows<V, float>(args, begin, end);
  } else {
    silu_mul_rows<V, uint16_t>(args, begin, end);
  }
}

}  // namespace
}  // namespace lamplighter
