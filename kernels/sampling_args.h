#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/string_view.h>

#include "kernels/checks.h"
#include "kernels/sampling.h"

// Operator arguments checked and turned into parameter blocks, for every device. `out` stays to be set.
namespace lamplighter {

// seeds, steps int64 [I].
inline UniformsArgs uniforms_args(const at::Tensor& seeds, const at::Tensor& steps, int64_t purpose,
                                  int64_t count) {
  constexpr int64_t kWords = int64_t{1} << 32;
  check_tensor("uniforms", "seeds", seeds, at::kLong, seeds.device());
  check_shape("uniforms", "seeds", seeds, {kAny});
  check_tensor("uniforms", "steps", steps, at::kLong, seeds.device());
  check_shape("uniforms", "steps", steps, {seeds.size(0)});
  TORCH_CHECK(purpose >= 0 && purpose < kWords, "uniforms: purpose is ", purpose, ", expected 0..2^32-1");
  TORCH_CHECK(count >= 0 && count < kWords, "uniforms: count is ", count, ", expected 0..2^32-1");
  UniformsArgs args{};
  args.seeds = seeds.const_data_ptr<int64_t>();
  args.steps = steps.const_data_ptr<int64_t>();
  args.images = seeds.size(0);
  args.count = count;
  args.purpose = purpose;
  return args;
}

// logits [S, R, V], S = I or 2 I; guidance fp32 [I] or [I, R]; temperature, top_p fp32 [I]; top_k int64 [I].
inline GuideAndFilterArgs guide_and_filter_args(const at::Tensor& logits, const at::Tensor& guidance,
                                                const at::Tensor& temperature, const at::Tensor& top_k,
                                                const at::Tensor& top_p, c10::string_view order) {
  constexpr const char* kOp = "guide_and_filter";
  const at::ScalarType dtype = logits.scalar_type();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf, kOp,
              ": logits have dtype ", dtype, ", expected float32, bfloat16 or float16");
  check_contiguous(kOp, "logits", logits);
  check_shape(kOp, "logits", logits, {kAny, kAny, kAny});
  check_vocabulary(kOp, logits, logits.size(2));
  check_shape(kOp, "temperature", temperature, {kAny});
  const int64_t images = temperature.size(0);
  TORCH_CHECK(logits.size(0) == images || logits.size(0) == 2 * images, kOp, ": logits have shape ",
              logits.sizes(), ", expected ", images, " or ", 2 * images, " sequences for ", images,
              " images");
  check_tensor(kOp, "temperature", temperature, at::kFloat, logits.device());
  check_tensor(kOp, "guidance", guidance, at::kFloat, logits.device());
  if (guidance.dim() == 2) {
    check_shape(kOp, "guidance", guidance, {images, logits.size(1)});
  } else {
    check_shape(kOp, "guidance", guidance, {images});
  }
  check_tensor(kOp, "top_k", top_k, at::kLong, logits.device());
  check_shape(kOp, "top_k", top_k, {images});
  check_tensor(kOp, "top_p", top_p, at::kFloat, logits.device());
  check_shape(kOp, "top_p", top_p, {images});
  TORCH_CHECK(order == "ar" || order == "eagle", kOp, ": order is '", order, "', expected ar or eagle");
  GuideAndFilterArgs args{};
  args.logits = logits.const_data_ptr();
  args.guidance = guidance.const_data_ptr<float>();
  args.temperature = temperature.const_data_ptr<float>();
  args.top_k = top_k.const_data_ptr<int64_t>();
  args.top_p = top_p.const_data_ptr<float>();
  args.images = images;
  args.rows = logits.size(1);
  args.vocabulary = logits.size(2);
  args.guided = logits.size(0) != images;
  args.guidance_by_row = guidance.dim() == 2;
  args.order = order == "ar" ? FilterOrder::kAr : FilterOrder::kEagle;
  args.type = element_type(logits);
  return args;
}

// probabilities fp32 [I, R, V], uniforms fp32 [I, R], temperature fp32 [I].
inline DrawArgs draw_args(const at::Tensor& probabilities, const at::Tensor& uniforms,
                          const at::Tensor& temperature) {
  check_tensor("draw", "probabilities", probabilities, at::kFloat, probabilities.device());
  check_shape("draw", "probabilities", probabilities, {kAny, kAny, kAny});
  check_vocabulary("draw", probabilities, probabilities.size(2));
  check_tensor("draw", "uniforms", uniforms, at::kFloat, probabilities.device());
  check_shape("draw", "uniforms", uniforms, {probabilities.size(0), probabilities.size(1)});
  check_tensor("draw", "temperature", temperature, at::kFloat, probabilities.device());
  check_shape("draw", "temperature", temperature, {probabilities.size(0)});
  DrawArgs args{};
  args.probabilities = probabilities.const_data_ptr<float>();
  args.uniforms = uniforms.const_data_ptr<float>();
  args.temperature = temperature.const_data_ptr<float>();
  args.images = probabilities.size(0);
  args.rows = probabilities.size(1);
  args.vocabulary = probabilities.size(2);
  return args;
}

}  // namespace lamplighter
