#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "kernels/common/cuda_stream.h"
#include "kernels/elementwise/args.h"

namespace lamplighter {
namespace {

at::Tensor run_rms_norm(RmsNormArgs args, const at::Tensor& x) {
  const CudaLauncher launcher(x);
  at::Tensor out = at::empty(x.sizes(), x.options());
  args.out = out.mutable_data_ptr();
  launcher.launch([&](void* stream) { rms_norm_cuda(args, stream); });
  return out;
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return run_rms_norm(rms_norm_args("rms_norm", nullptr, x, weight, eps), x);
}

at::Tensor add_rms_norm(at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight, double eps) {
  return run_rms_norm(rms_norm_args("add_rms_norm", &residual, x, weight, eps), x);
}

at::Tensor silu_mul(const at::Tensor& gate_up) {
  SiluMulArgs args = silu_mul_args(gate_up);
  const CudaLauncher launcher(gate_up);
  auto shape = gate_up.sizes().vec();
  shape.back() = args.width;
  at::Tensor out = at::empty(shape, gate_up.options());
  args.out = out.mutable_data_ptr();
  launcher.launch([&](void* stream) { silu_mul_cuda(args, stream); });
  return out;
}

void norm_heads(at::Tensor& values, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  const NormHeadsArgs args = norm_heads_args(values, weight, bias, eps);
  const CudaLauncher launcher(values);
  launcher.launch([&](void* stream) { norm_heads_cuda(args, stream); });
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CUDA, m) {
  m.impl("rms_norm", &rms_norm);
  m.impl("add_rms_norm", &add_rms_norm);
  m.impl("silu_mul", &silu_mul);
  m.impl("norm_heads", &norm_heads);
}

}  // namespace lamplighter
