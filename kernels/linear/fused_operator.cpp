#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>

#include "kernels/common/meta.h"
#include "kernels/common/operator.h"
#include "kernels/linear/full_sums.h"
#include "kernels/linear/run_few_rows.h"

// Products with what stands in front of them and behind them. Few rows with plain weights are one kernel on
// CUDA; everything else is the operators one after the other.
namespace lamplighter {
namespace {

template <class Result, class... Arguments>
Result call(const char* name, Arguments... arguments) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Result(Arguments...)>().call(
      arguments...);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  return call<at::Tensor, const at::Tensor&, const at::Tensor&, int64_t>("lamplighter::linear", x, weight,
                                                                         out_features);
}

void check_added(const at::Tensor& residual, const at::Tensor& x) {
  check_tensor("add_linear", "residual", residual, x.scalar_type(), x.device());
  TORCH_CHECK(x.dim() >= 1 && residual.dim() == x.dim() &&
                  residual.sizes().slice(0, residual.dim() - 1) == x.sizes().slice(0, x.dim() - 1),
              "add_linear: residual has shape ", residual.sizes(), ", expected the rows of x of shape ",
              x.sizes());
}

template <On on>
void add_linear(at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight) {
  if constexpr (on == On::meta) {
    check_rank("add_linear", "residual", residual, 1);
    check_rank("add_linear", "x", x, 1);
    check_same_dtype("add_linear", "residual", residual, x);
  } else {
    check_added(residual, x);
    if constexpr (on == On::cuda) {
      if (run_few_rows<on>(FewRowsForm::kAdd, x, weight, nullptr, 0, residual.size(-1), residual)) return;
      if (weight.scalar_type() == x.scalar_type()) {
        const FullPrecisionSums full_precision;
        at::Tensor rows = residual.view({-1, residual.size(-1)});
        at::addmm_out(rows, rows, x.view({-1, x.size(-1)}), weight.t());
        return;
      }
    }
    residual.add_(linear(x, weight, residual.size(-1)));
  }
}

template <On on>
at::Tensor norm_linear(const at::Tensor& x, const at::Tensor& norm, double eps, const at::Tensor& weight,
                       int64_t out_features, bool gated) {
  if constexpr (on == On::meta) {
    check_rank("norm_linear", "x", x, 1);
    check_same_dtype("norm_linear", "norm", norm, x);
    return with_last(x, gated ? out_features / 2 : out_features);
  } else {
    if constexpr (on == On::cuda) {
      at::Tensor out;
      if (run_few_rows<on>(gated ? FewRowsForm::kGated : FewRowsForm::kNorm, x, weight, &norm, eps,
                           out_features, out))
        return out;
    }
    const at::Tensor normed =
        call<at::Tensor, const at::Tensor&, const at::Tensor&, double>("lamplighter::rms_norm", x, norm, eps);
    const at::Tensor out = linear(normed, weight, out_features);
    return gated ? call<at::Tensor, const at::Tensor&>("lamplighter::silu_mul", out) : out;
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(m, "add_linear(Tensor(a!) residual, Tensor x, Tensor weight) -> ()",
         [](auto on) { return &add_linear<on.value>; });
  define(m,
         "norm_linear(Tensor x, Tensor norm, float eps, Tensor weight, int out_features, bool gated) -> "
         "Tensor",
         [](auto on) { return &norm_linear<on.value>; });
}

}  // namespace lamplighter
