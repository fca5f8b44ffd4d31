#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "kernels/common/exported.h"

namespace lamplighter {
namespace ops {

// Diagonal Gaussians of the target and of a draft: fp32 [N, C] each.
struct GaussianPair {
  at::Tensor target_mean, target_deviation, draft_mean, draft_deviation;
};

// Logarithm of the target's density at x fp32 [N, C] over the draft's: fp64 [N];
// kernels/continuous/gaussian.h.
LAMPLIGHTER_EXPORTED at::Tensor gaussian_log_ratio(const at::Tensor& x, const GaussianPair& pair);

// log_sigma fp64 [N], noise fp32 [N, R, C], uniforms fp64 [N, R] -> tokens fp32 [N, C] and tries int64 [N]:
// the first accepted of R proposals, counted from 1; 0 none, and the last one stays.
LAMPLIGHTER_EXPORTED std::tuple<at::Tensor, at::Tensor> gaussian_residual(const GaussianPair& pair,
                                                                          const at::Tensor& log_sigma,
                                                                          const at::Tensor& noise,
                                                                          const at::Tensor& uniforms);

}  // namespace ops

struct GaussianLogRatioArgs;
struct GaussianResidualArgs;

// Arguments checked and turned into what kernels take, without the addresses of results.
LAMPLIGHTER_EXPORTED GaussianLogRatioArgs gaussian_log_ratio_args(const at::Tensor& x,
                                                                  const ops::GaussianPair& pair);
LAMPLIGHTER_EXPORTED GaussianResidualArgs gaussian_residual_args(const ops::GaussianPair& pair,
                                                                 const at::Tensor& log_sigma,
                                                                 const at::Tensor& noise,
                                                                 const at::Tensor& uniforms);

}  // namespace lamplighter
