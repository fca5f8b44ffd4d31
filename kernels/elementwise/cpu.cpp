#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>

#include "kernels/common/isa.h"
#include "kernels/elementwise/args.h"

namespace lamplighter {
namespace {

// Rows of at least this many elements in all go to one thread: below, waking another one costs more.
constexpr int64_t kElementsPerThread = 32768;

template <typename Args>
void over_rows(const Args& args, void (*kernel)(const Args&, int64_t, int64_t)) {
  const int64_t grain = std::max<int64_t>(1, kElementsPerThread / args.width);
  at::parallel_for(0, args.rows, grain, [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
}

void run(const RmsNormArgs& args) {
  const Isa isa = active_isa();
  over_rows(args, isa == Isa::kAvx512 ? rms_norm_avx512
                  : isa == Isa::kAvx2 ? rms_norm_avx2
                                      : rms_norm_portable);
}

void run(const SiluMulArgs& args) {
  const Isa isa = active_isa();
  over_rows(args, isa == Isa::kAvx512 ? silu_mul_avx512
                  : isa == Isa::kAvx2 ? silu_mul_avx2
                                      : silu_mul_portable);
}

void run(const NormHeadsArgs& args) {
  const Isa isa = active_isa();
  over_rows(args, isa == Isa::kAvx512 ? norm_heads_avx512
                  : isa == Isa::kAvx2 ? norm_heads_avx2
                                      : norm_heads_portable);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  RmsNormArgs args = rms_norm_args("rms_norm", nullptr, x, weight, eps);
  at::Tensor out = at::empty(x.sizes(), x.options());
  args.out = out.mutable_data_ptr();
  run(args);
  return out;
}

at::Tensor add_rms_norm(at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight, double eps) {
  RmsNormArgs args = rms_norm_args("add_rms_norm", &residual, x, weight, eps);
  at::Tensor out = at::empty(x.sizes(), x.options());
  args.out = out.mutable_data_ptr();
  run(args);
  return out;
}

at::Tensor silu_mul(const at::Tensor& gate_up) {
  SiluMulArgs args = silu_mul_args(gate_up);
  auto shape = gate_up.sizes().vec();
  shape.back() = args.width;
  at::Tensor out = at::empty(shape, gate_up.options());
  args.out = out.mutable_data_ptr();
  run(args);
  return out;
}

void norm_heads(at::Tensor& values, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  run(norm_heads_args(values, weight, bias, eps));
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CPU, m) {
  m.impl("rms_norm", &rms_norm);
  m.impl("add_rms_norm", &add_rms_norm);
  m.impl("silu_mul", &silu_mul);
  m.impl("norm_heads", &norm_heads);
}

}  // namespace lamplighter
