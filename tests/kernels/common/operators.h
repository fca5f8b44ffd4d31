#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/anchor.h"

// The operators as TorchScript calls them, and inputs for their tests.
namespace lamplighter::test {

// The operator `lamplighter::name`.
template <typename Signature>
c10::TypedOperatorHandle<Signature> find(const std::string& name) {
  lamplighter_ops_anchor();
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(("lamplighter::" + name).c_str(), "")
      .typed<Signature>();
}

template <typename Result, typename... Args>
Result call(const std::string& name, Args... args) {
  return find<Result(Args...)>(name).call(std::forward<Args>(args)...);
}

inline at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return call<at::Tensor, const at::Tensor&, const at::Tensor&, double>("rms_norm", x, weight, eps);
}

inline at::Tensor add_rms_norm(at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight,
                               double eps) {
  return call<at::Tensor, at::Tensor&, const at::Tensor&, const at::Tensor&, double>("add_rms_norm", residual,
                                                                                     x, weight, eps);
}

inline at::Tensor silu_mul(const at::Tensor& gate_up) {
  return call<at::Tensor, const at::Tensor&>("silu_mul", gate_up);
}

inline at::Tensor exact_gelu(const at::Tensor& x) {
  return call<at::Tensor, const at::Tensor&>("gelu", x);
}

inline at::Tensor norm_heads(const at::Tensor& values, const at::Tensor& weight, const at::Tensor& bias,
                             double eps) {
  at::Tensor normed = values.clone();
  call<void, at::Tensor&, const at::Tensor&, const at::Tensor&, double>("norm_heads", normed, weight, bias,
                                                                        eps);
  return normed;
}

inline at::Tensor pack_linear(const at::Tensor& weight) {
  return call<at::Tensor, const at::Tensor&>("pack_linear", weight);
}

inline at::Tensor pack_linear_bits(const at::Tensor& weight, int64_t bits) {
  return call<at::Tensor, const at::Tensor&, int64_t>("pack_linear_bits", weight, bits);
}

inline at::Tensor round_linear(const at::Tensor& weight, int64_t bits) {
  return call<at::Tensor, const at::Tensor&, int64_t>("round_linear", weight, bits);
}

inline at::Tensor pack_linear_int8(const at::Tensor& weight) {
  return call<at::Tensor, const at::Tensor&>("pack_linear_int8", weight);
}

inline void add_linear(at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight) {
  call<void, at::Tensor&, const at::Tensor&, const at::Tensor&>("add_linear", residual, x, weight);
}

inline at::Tensor norm_linear(const at::Tensor& x, const at::Tensor& norm, double eps,
                              const at::Tensor& weight, int64_t out_features, bool gated) {
  return call<at::Tensor, const at::Tensor&, const at::Tensor&, double, const at::Tensor&, int64_t, bool>(
      "norm_linear", x, norm, eps, weight, out_features, gated);
}

inline at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  return call<at::Tensor, const at::Tensor&, const at::Tensor&, int64_t>("linear", x, weight, out_features);
}

// The arguments of `attend`.
struct AttendCall {
  at::Tensor qkv, cache;
  int64_t layer = 0;
  at::Tensor positions, lengths, tree_mask, rotary;
  int64_t heads = 1, kv_heads = 1;
  double scale = 1.0;

  at::Tensor run() {
    static const auto op =
        find<at::Tensor(const at::Tensor&, at::Tensor&, int64_t, const at::Tensor&, const at::Tensor&,
                        const at::Tensor&, const at::Tensor&, int64_t, int64_t, double)>("attend");
    return op.call(qkv, cache, layer, positions, lengths, tree_mask, rotary, heads, kv_heads, scale);
  }
};

inline at::Tensor random_tensor(std::mt19937& rng, at::IntArrayRef sizes, at::ScalarType dtype,
                                float spread = 1) {
  at::Tensor values = at::empty(sizes, at::kFloat);
  std::normal_distribution<float> normal(0, spread);
  float* p = values.mutable_data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) p[i] = normal(rng);
  return values.to(dtype);
}

inline at::Tensor integers(at::IntArrayRef sizes, const std::function<int64_t(int64_t)>& value) {
  at::Tensor tensor = at::empty(sizes, at::kLong);
  int64_t* p = tensor.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < tensor.numel(); ++i) p[i] = value(i);
  return tensor;
}

inline int64_t pick(std::mt19937& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}

// Same bits, NaN included.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const auto size = a.element_size();
  const at::ScalarType bits = size == 1 ? at::kChar : size == 2 ? at::kShort : at::kInt;
  return a.scalar_type() == b.scalar_type() && a.contiguous().view(bits).equal(b.contiguous().view(bits));
}

inline std::string message_of(const std::function<void()>& call_it) {
  try {
    call_it();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "no error";
}

}  // namespace lamplighter::test
