#pragma once

#include "kernels/common/checks.h"
#include "kernels/continuous/continuous.h"
#include "kernels/ops.h"

// Operator arguments checked and turned into a parameter block, for every device. The results stay to be set.
namespace lamplighter {

// fp32 [N, C] each, on one device.
inline GaussianPairs gaussian_pairs(const char* op, const ops::GaussianPair& pair) {
  const auto rows = [&](const char* name, const at::Tensor& tensor) {
    check_tensor(op, name, tensor, at::kFloat, pair.target_mean.device());
    if (&tensor == &pair.target_mean) check_shape(op, name, tensor, {kAny, kAny});
    check_shape(op, name, tensor, {pair.target_mean.size(0), pair.target_mean.size(1)});
    return tensor.const_data_ptr<float>();
  };
  GaussianPairs pairs{};
  pairs.target_mean = rows("target_mean", pair.target_mean);
  pairs.target_deviation = rows("target_deviation", pair.target_deviation);
  pairs.draft_mean = rows("draft_mean", pair.draft_mean);
  pairs.draft_deviation = rows("draft_deviation", pair.draft_deviation);
  pairs.rows = pair.target_mean.size(0);
  pairs.channels = pair.target_mean.size(1);
  return pairs;
}

inline GaussianLogRatioArgs gaussian_log_ratio_args(const at::Tensor& x, const ops::GaussianPair& pair) {
  constexpr const char* kOp = "gaussian_log_ratio";
  GaussianLogRatioArgs args{};
  args.pairs = gaussian_pairs(kOp, pair);
  check_tensor(kOp, "x", x, at::kFloat, pair.target_mean.device());
  check_shape(kOp, "x", x, {args.pairs.rows, args.pairs.channels});
  args.x = x.const_data_ptr<float>();
  return args;
}

inline GaussianResidualArgs gaussian_residual_args(const ops::GaussianPair& pair, const at::Tensor& log_sigma,
                                                   const at::Tensor& noise, const at::Tensor& uniforms) {
  constexpr const char* kOp = "gaussian_residual";
  GaussianResidualArgs args{};
  args.pairs = gaussian_pairs(kOp, pair);
  const at::Device device = pair.target_mean.device();
  check_tensor(kOp, "log_sigma", log_sigma, at::kDouble, device);
  check_shape(kOp, "log_sigma", log_sigma, {args.pairs.rows});
  check_tensor(kOp, "noise", noise, at::kFloat, device);
  check_shape(kOp, "noise", noise, {args.pairs.rows, kAny, args.pairs.channels});
  args.proposals = noise.size(1);
  TORCH_CHECK(args.proposals > 0 && args.proposals < (int64_t{1} << 30), kOp, ": noise has shape ",
              noise.sizes(), ", expected 1..2^30 proposals");
  check_tensor(kOp, "uniforms", uniforms, at::kDouble, device);
  check_shape(kOp, "uniforms", uniforms, {args.pairs.rows, args.proposals});
  args.log_sigma = log_sigma.const_data_ptr<double>();
  args.noise = noise.const_data_ptr<float>();
  args.uniforms = uniforms.const_data_ptr<double>();
  return args;
}

}  // namespace lamplighter
