#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "kernels/ops.h"
#include "kernels/sampling/distribution_args.h"
#include "kernels/sampling/sampling.h"

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

// logits [S, R, V], S = I or 2 I; shapes of the others: ops::Filtering.
inline GuideAndFilterArgs guide_and_filter_args(const at::Tensor& logits, const ops::Filtering& filtering) {
  constexpr const char* kOp = "guide_and_filter";
  const auto& [guidance, temperature, top_k, top_p, order] = filtering;
  check_logits(kOp, "logits", logits);
  check_shape(kOp, "temperature", temperature, {kAny});
  GuideAndFilterArgs args{};
  args.images = temperature.size(0);
  args.logits = logit_rows(kOp, "logits", logits, args.images);
  check_tensor(kOp, "temperature", temperature, at::kFloat, logits.device());
  check_tensor(kOp, "guidance", guidance, at::kFloat, logits.device());
  if (guidance.dim() == 2) {
    check_shape(kOp, "guidance", guidance, {args.images, logits.size(1)});
  } else {
    check_shape(kOp, "guidance", guidance, {args.images});
  }
  check_tensor(kOp, "top_k", top_k, at::kLong, logits.device());
  check_shape(kOp, "top_k", top_k, {args.images});
  check_tensor(kOp, "top_p", top_p, at::kFloat, logits.device());
  check_shape(kOp, "top_p", top_p, {args.images});
  TORCH_CHECK(order == "ar" || order == "eagle", kOp, ": order is '", order, "', expected ar or eagle");
  args.guidance = guidance.const_data_ptr<float>();
  args.temperature = temperature.const_data_ptr<float>();
  args.top_k = top_k.const_data_ptr<int64_t>();
  args.top_p = top_p.const_data_ptr<float>();
  args.guidance_by_row = guidance.dim() == 2;
  args.order = order == "ar" ? FilterOrder::kAr : FilterOrder::kEagle;
  return args;
}

// Room for the result of guide_and_filter.
inline at::Tensor statistics_of(GuideAndFilterArgs& args, const at::Tensor& logits) {
  at::Tensor out =
      at::empty({args.images, args.logits.rows, kRowStatistics}, logits.options().dtype(at::kFloat));
  args.out = reinterpret_cast<RowStatistics*>(out.mutable_data_ptr<float>());
  return out;
}

// Of logits [S, R, V] and statistics fp32 [I, R, kRowStatistics].
inline ProbabilitiesArgs probabilities_args(const at::Tensor& logits, const at::Tensor& statistics) {
  const CheckedRows checked = distribution_rows("probabilities", "logits", logits, statistics);
  ProbabilitiesArgs args{};
  args.rows = checked.rows;
  args.images = checked.images;
  return args;
}

// values and statistics of distributions [I, R, V], uniforms fp32 [I, R], temperature fp32 [I].
inline DrawArgs draw_args(const at::Tensor& values, const at::Tensor& uniforms, const at::Tensor& temperature,
                          const at::Tensor& statistics) {
  const CheckedRows checked = distribution_rows("draw", "values", values, statistics);
  check_tensor("draw", "uniforms", uniforms, at::kFloat, values.device());
  check_shape("draw", "uniforms", uniforms, {checked.images, checked.rows.rows});
  check_tensor("draw", "temperature", temperature, at::kFloat, values.device());
  check_shape("draw", "temperature", temperature, {checked.images});
  DrawArgs args{};
  args.rows = checked.rows;
  args.uniforms = uniforms.const_data_ptr<float>();
  args.temperature = temperature.const_data_ptr<float>();
  args.images = checked.images;
  return args;
}

}  // namespace lamplighter
