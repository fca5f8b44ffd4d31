#include <ATen/Context.h>
#include <ATen/ops/linear.h>
#include <torch/library.h>

#include "kernels/common/checks.h"

namespace lamplighter {
namespace {

// Sums of a product stay in fp32 to the end while this lives; cuBLAS may otherwise add partial sums of split
// products in the 16-bit type.
class FullPrecisionSums {
 public:
  using Option = at::CuBLASReductionOption;

  FullPrecisionSums()
      : bfloat16_(at::globalContext().allowBF16ReductionCuBLAS()),
        float16_(at::globalContext().allowFP16ReductionCuBLAS()) {
    constexpr Option kFull = Option::DisallowReducedPrecisionAllowSplitK;
    set(kFull, kFull);
  }
  ~FullPrecisionSums() { set(bfloat16_, float16_); }
  FullPrecisionSums(const FullPrecisionSums&) = delete;
  FullPrecisionSums& operator=(const FullPrecisionSums&) = delete;

 private:
  static bool reduced(Option option) { return option == Option::AllowReducedPrecisionWithSplitK; }
  static bool split(Option option) { return option != Option::DisallowReducedPrecisionDisallowSplitK; }

  static void set(Option bfloat16, Option float16) {
    at::globalContext().setAllowBF16ReductionCuBLAS(reduced(bfloat16), split(bfloat16));
    at::globalContext().setAllowFP16ReductionCuBLAS(reduced(float16), split(float16));
  }

  Option bfloat16_;
  Option float16_;
};

at::Tensor pack_linear(const at::Tensor& weight) {
  check_activations("pack_linear", "weight", weight);
  check_shape("pack_linear", "weight", weight, {kAny, kAny});
  return weight;
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  check_activations("linear", "x", x);
  TORCH_CHECK(x.dim() >= 1, "linear: x has shape ", x.sizes(), ", expected [..., in]");
  check_tensor("linear", "weight", weight, x.scalar_type(), x.device());
  check_shape("linear", "weight", weight, {out_features, x.size(-1)});
  const FullPrecisionSums full_precision;
  return at::linear(x, weight);
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CUDA, m) {
  m.impl("pack_linear", &pack_linear);
  m.impl("pack_linear_int8", &pack_linear);  // the weight as it is: there are no products of int8 here
  m.impl("linear", &linear);
}

}  // namespace lamplighter
