#pragma once

#include <vector>

#include "continuous/continuous_image.h"
#include "kernels/ops.h"

namespace lamplighter {

// Tokens in place of rejected drafts, a row each.
struct Rejected {
  ops::GaussianPair pair;  // fp32 [n, C]
  at::Tensor log_sigma;    // fp64 [n]
  std::vector<ContinuousImage*> images;
  std::vector<std::int64_t> positions;
};

// Tokens [n, C] of norm((Sigma p - q)+) by acceptance and rejection, with the samples of their positions;
// after `cap` proposals the last one, a plain sample of the target, stays. Counts both in the images'
// statistics.
at::Tensor residual_tokens(const Rejected& rejected, std::int64_t cap);

// Proposals first .. first + count - 1 of rows of `rejected`.
struct Proposals {
  at::Tensor normals;   // fp32 [n, count, C]
  at::Tensor uniforms;  // fp64 [n, count]
};
Proposals sample_proposals(const Rejected& rejected, const std::vector<std::int64_t>& rows,
                           std::int64_t first, std::int64_t count);

}  // namespace lamplighter
