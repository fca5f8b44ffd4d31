#pragma once

#include <cstdint>

#include "kernels/common/simd_exp.h"
#include "kernels/elementwise/elementwise.h"

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

// The vector at element `at` of a row, and the shorter one at its end, which is loaded with zeros behind it.
template <typename V>
struct Whole {
  int64_t at;

  template <typename T>
  typename V::F load(const T* row) const {
    return V::load(row + at);
  }
  template <typename T>
  void store(T* row, typename V::F a) const {
    V::store(row + at, a);
  }
  typename V::F inside(typename V::F a) const { return a; }  // zeros behind the row
};

template <typename V>
struct Rest {
  int64_t at;
  int64_t n;

  template <typename T>
  typename V::F load(const T* row) const {
    return V::load(row + at, n);
  }
  template <typename T>
  void store(T* row, typename V::F a) const {
    V::store(row + at, a, n);
  }
  typename V::F inside(typename V::F a) const {
    float lanes[V::kLanes];
    V::store(lanes, a);
    return V::load(lanes, n);
  }
};

// use(v) for all vectors of a row.
template <typename V, typename Use>
void over_vectors(int64_t width, const Use& use) {
  int64_t i = 0;
  for (; i + V::kLanes <= width; i += V::kLanes) use(Whole<V>{i});
  if (i < width) use(Rest<V>{i, width - i});
}

template <typename V, typename T>
void rms_norm_rows(const RmsNormArgs& args, int64_t begin, int64_t end) {
  const int64_t width = args.width;
  const T* weight = static_cast<const T*>(args.weight);
  for (int64_t r = begin; r < end; ++r) {
    const T* x = static_cast<const T*>(args.x) + r * width;
    T* out = static_cast<T*>(args.out) + r * width;
    const T* row = x;
    if (args.residual != nullptr) {
      T* residual = static_cast<T*>(args.residual) + r * width;
      over_vectors<V>(width, [=](auto v) { v.store(residual, V::add(v.load(residual), v.load(x))); });
      row = residual;
    }
    const float mean = sum_of_squares<V>(row, width) / static_cast<float>(width);
    const auto scale = V::set(1.0F / __builtin_sqrtf(mean + args.eps));
    over_vectors<V>(width, [=](auto v) {
      v.store(out, V::mul(V::rounded(V::mul(v.load(row), scale), T{}), v.load(weight)));
    });
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
    over_vectors<V>(
        width, [=](auto v) { v.store(out, V::mul(V::rounded(silu<V>(v.load(gate)), T{}), v.load(up))); });
  }
}

// The library's function lane by lane: a head's inner layer is small beside its products.
template <typename V>
typename V::F gelu(typename V::F z) {
  constexpr float kRootHalf = 0.70710678F;
  float lanes[V::kLanes];
  V::store(lanes, z);
  for (float& x : lanes) x = 0.5F * x * (1.0F + __builtin_erff(x * kRootHalf));
  return V::load(lanes);
}

template <typename V, typename T>
void gelu_rows(const GeluArgs& args, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    const T* x = static_cast<const T*>(args.x) + r * args.width;
    T* out = static_cast<T*>(args.out) + r * args.width;
    over_vectors<V>(args.width, [=](auto v) { v.store(out, gelu<V>(v.load(x))); });
  }
}

template <typename V, typename T>
void norm_head(T* x, const T* weight, const T* bias, int64_t width, float eps) {
  const float count = static_cast<float>(width);
  auto sum = V::zero();
  over_vectors<V>(width, [&](auto v) { sum = V::add(sum, v.load(x)); });
  const auto mean = V::set(V::sum(sum) / count);
  auto squares = V::zero();
  over_vectors<V>(width, [&](auto v) {
    const auto d = v.inside(V::sub(v.load(x), mean));
    squares = V::fma(d, d, squares);
  });
  const auto scale = V::set(1.0F / __builtin_sqrtf(V::sum(squares) / count + eps));
  over_vectors<V>(width, [=](auto v) {
    const auto normed = V::rounded(V::mul(V::sub(v.load(x), mean), scale), T{});
    v.store(x, V::add(V::mul(normed, v.load(weight)), v.load(bias)));
  });
}

template <typename V, typename T>
void norm_heads_rows(const NormHeadsArgs& args, int64_t begin, int64_t end) {
  const T* weight = static_cast<const T*>(args.weight);
  const T* bias = static_cast<const T*>(args.bias);
  for (int64_t r = begin; r < end; ++r) {
    T* row = static_cast<T*>(args.values) + r * args.width;
    for (int64_t first = 0; first < args.heads * args.head_dim; first += args.head_dim) {
      norm_head<V>(row + first, weight + first, bias + first, args.head_dim, args.eps);
    }
  }
}

// use(T{}) for the type of the elements: float, or uint16_t for bf16.
template <typename Use>
void with_elements(ElementType type, const Use& use) {
  type == ElementType::kFloat32 ? use(float{}) : use(uint16_t{});
}

}  // namespace
}  // namespace lamplighter
