#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "kernels/common/checks.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/linear/few_rows.h"

namespace lamplighter {

// Runs the kernel of few rows where it takes this product. `out`: [..., out_features], of a gated product
// half of that; allocated when it is not there. A template, because builds without CUDA lack the kernel.
template <On on>
bool run_few_rows(FewRowsForm form, const at::Tensor& x, const at::Tensor& weight, const at::Tensor* norm,
                  double eps, int64_t out_features, at::Tensor& out) {
  if (x.scalar_type() != at::kBFloat16 || weight.scalar_type() != at::kBFloat16) return false;
  if (x.dim() < 1 || x.size(-1) == 0 || x.numel() > kMoreRows * x.size(-1)) return false;
  check_tensor("linear", "x", x, at::kBFloat16, weight.device());
  check_tensor("linear", "weight", weight, at::kBFloat16, x.device());
  check_shape("linear", "weight", weight, {out_features, x.size(-1)});
  FewRowsArgs args{};
  args.form = form;
  args.x = x.const_data_ptr();
  args.weight = weight.const_data_ptr();
  args.in = x.size(-1);
  args.rows = x.numel() / args.in;
  args.out_features = out_features;
  args.eps = static_cast<float>(eps);
  if (norm != nullptr) {
    check_tensor("norm_linear", "norm", *norm, at::kBFloat16, x.device());
    check_shape("norm_linear", "norm", *norm, {args.in});
    args.norm = norm->const_data_ptr();
  }
  if (!takes_few_rows(args)) return false;
  if (!out.defined()) {
    at::DimVector shape(x.sizes());
    shape.back() = form == FewRowsForm::kGated ? out_features / 2 : out_features;
    out = at::empty(shape, x.options());
  }
  args.out = out.mutable_data_ptr();
  on_cuda(x, [&](void* stream) { few_rows_cuda(args, stream); });
  return true;
}

}  // namespace lamplighter
