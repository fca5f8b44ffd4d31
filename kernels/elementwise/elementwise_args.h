#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/common/checks.h"
#include "kernels/elementwise/elementwise.h"

// Operator arguments checked and turned into parameter blocks, for every device. `out` stays to be set.
namespace lamplighter {

// x [..., H], weight [H]; `residual`: null for rms_norm, else shaped like x.
inline RmsNormArgs rms_norm_args(const char* op, const at::Tensor* residual, const at::Tensor& x,
                                 const at::Tensor& weight, double eps) {
  check_activations(op, "x", x);
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) > 0, op, ": x has shape ", x.sizes(),
              ", expected [..., H] with H > 0");
  check_tensor(op, "weight", weight, x.scalar_type(), x.device());
  check_shape(op, "weight", weight, {x.size(-1)});
  if (residual != nullptr) {
    check_tensor(op, "residual", *residual, x.scalar_type(), x.device());
    TORCH_CHECK(residual->sizes() == x.sizes(), op, ": residual has shape ", residual->sizes(),
                ", expected that of x, ", x.sizes());
  }
  RmsNormArgs args{};
  args.residual = residual != nullptr ? residual->mutable_data_ptr() : nullptr;
  args.x = x.const_data_ptr();
  args.weight = weight.const_data_ptr();
  args.width = x.size(-1);
  args.rows = x.numel() / args.width;
  args.eps = static_cast<float>(eps);
  args.type = element_type(x);
  return args;
}

// gate_up [..., 2F].
inline SiluMulArgs silu_mul_args(const at::Tensor& gate_up) {
  check_activations("silu_mul", "gate_up", gate_up);
  TORCH_CHECK(gate_up.dim() >= 1 && gate_up.size(-1) > 0 && gate_up.size(-1) % 2 == 0,
              "silu_mul: gate_up has shape ", gate_up.sizes(), ", expected [..., 2F] with F > 0");
  SiluMulArgs args{};
  args.gate_up = gate_up.const_data_ptr();
  args.width = gate_up.size(-1) / 2;
  args.rows = gate_up.numel() / (2 * args.width);
  args.type = element_type(gate_up);
  return args;
}

// x [..., F].
inline GeluArgs gelu_args(const at::Tensor& x) {
  check_activations("gelu", "x", x);
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) > 0, "gelu: x has shape ", x.sizes(),
              ", expected [..., F] with F > 0");
  GeluArgs args{};
  args.x = x.const_data_ptr();
  args.width = x.size(-1);
  args.rows = x.numel() / args.width;
  args.type = element_type(x);
  return args;
}

// values [..., N]; weight, bias [heads, D] with heads * D <= N.
inline NormHeadsArgs norm_heads_args(const at::Tensor& values, const at::Tensor& weight,
                                     const at::Tensor& bias, double eps) {
  constexpr const char* op = "norm_heads";
  check_activations(op, "values", values);
  check_tensor(op, "weight", weight, values.scalar_type(), values.device());
  check_shape(op, "weight", weight, {kAny, kAny});
  check_tensor(op, "bias", bias, values.scalar_type(), values.device());
  check_shape(op, "bias", bias, {weight.size(0), weight.size(1)});
  TORCH_CHECK(values.dim() >= 1 && weight.numel() > 0 && values.size(-1) >= weight.numel(), op,
              ": values have shape ", values.sizes(), ", expected [..., N] with N >= ", weight.numel(),
              " for a weight of shape ", weight.sizes());
  NormHeadsArgs args{};
  args.values = values.mutable_data_ptr();
  args.weight = weight.const_data_ptr();
  args.bias = bias.const_data_ptr();
  args.width = values.size(-1);
  args.rows = values.numel() / args.width;
  args.heads = weight.size(0);
  args.head_dim = weight.size(1);
  args.eps = static_cast<float>(eps);
  args.type = element_type(values);
  return args;
}

}  // namespace lamplighter
