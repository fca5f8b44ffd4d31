#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/common/rows_on_threads.h"
#include "kernels/elementwise/elementwise_args.h"

namespace lamplighter {
namespace {

template <On on>
at::Tensor run_rms_norm(RmsNormArgs args, const at::Tensor& x) {
  at::Tensor out = at::empty(x.sizes(), x.options());
  args.out = out.mutable_data_ptr();
  if constexpr (on == On::cuda) {
    on_cuda(x, [&](void* stream) { rms_norm_cuda(args, stream); });
  } else {
    rows_on_threads(args, args.rows, args.width, for_isa([](auto isa) { return &rms_norm_cpu<isa.value>; }));
  }
  return out;
}

template <On on>
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if constexpr (on == On::meta) {
    check_rank("rms_norm", "x", x, 1);
    check_same_dtype("rms_norm", "weight", weight, x);
    return like(x, x.sym_sizes().vec());
  } else {
    return run_rms_norm<on>(rms_norm_args("rms_norm", nullptr, x, weight, eps), x);
  }
}

template <On on>
at::Tensor add_rms_norm(at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight, double eps) {
  if constexpr (on == On::meta) {
    check_rank("add_rms_norm", "x", x, 1);
    check_same_dtype("add_rms_norm", "residual", residual, x);
    check_same_dtype("add_rms_norm", "weight", weight, x);
    return like(x, x.sym_sizes().vec());
  } else {
    return run_rms_norm<on>(rms_norm_args("add_rms_norm", &residual, x, weight, eps), x);
  }
}

template <On on>
at::Tensor silu_mul(const at::Tensor& gate_up) {
  if constexpr (on == On::meta) {
    check_rank("silu_mul", "gate_up", gate_up, 1);
    return with_last(gate_up, gate_up.sym_size(-1) / 2);
  } else {
    SiluMulArgs args = silu_mul_args(gate_up);
    auto shape = gate_up.sizes().vec();
    shape.back() = args.width;
    at::Tensor out = at::empty(shape, gate_up.options());
    args.out = out.mutable_data_ptr();
    if constexpr (on == On::cuda) {
      on_cuda(gate_up, [&](void* stream) { silu_mul_cuda(args, stream); });
    } else {
      rows_on_threads(args, args.rows, args.width,
                      for_isa([](auto isa) { return &silu_mul_cpu<isa.value>; }));
    }
    return out;
  }
}

template <On on>
at::Tensor gelu(const at::Tensor& x) {
  if constexpr (on == On::meta) {
    check_rank("gelu", "x", x, 1);
    return like(x, x.sym_sizes().vec());
  } else {
    GeluArgs args = gelu_args(x);
    at::Tensor out = at::empty(x.sizes(), x.options());
    args.out = out.mutable_data_ptr();
    if constexpr (on == On::cuda) {
      on_cuda(x, [&](void* stream) { gelu_cuda(args, stream); });
    } else {
      rows_on_threads(args, args.rows, args.width, for_isa([](auto isa) { return &gelu_cpu<isa.value>; }));
    }
    return out;
  }
}

template <On on>
void norm_heads(at::Tensor& values, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  if constexpr (on == On::meta) {
    check_rank("norm_heads", "values", values, 1);
    check_rank("norm_heads", "weight", weight, 2);
    check_rank("norm_heads", "bias", bias, 2);
    check_same_dtype("norm_heads", "weight", weight, values);
    check_same_dtype("norm_heads", "bias", bias, values);
  } else {
    const NormHeadsArgs args = norm_heads_args(values, weight, bias, eps);
    if constexpr (on == On::cuda) {
      on_cuda(values, [&](void* stream) { norm_heads_cuda(args, stream); });
    } else {
      rows_on_threads(args, args.rows, args.width,
                      for_isa([](auto isa) { return &norm_heads_cpu<isa.value>; }));
    }
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(m, "rms_norm(Tensor x, Tensor weight, float eps) -> Tensor",
         [](auto on) { return &rms_norm<on.value>; });
  define(m, "add_rms_norm(Tensor(a!) residual, Tensor x, Tensor weight, float eps) -> Tensor",
         [](auto on) { return &add_rms_norm<on.value>; });
  define(m, "silu_mul(Tensor gate_up) -> Tensor", [](auto on) { return &silu_mul<on.value>; });
  define(m, "gelu(Tensor x) -> Tensor", [](auto on) { return &gelu<on.value>; });
  define(m, "norm_heads(Tensor(a!) values, Tensor weight, Tensor bias, float eps) -> ()",
         [](auto on) { return &norm_heads<on.value>; });
}

}  // namespace lamplighter
