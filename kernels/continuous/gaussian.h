#pragma once

#include <cstdint>

#include "kernels/common/isa.h"

namespace lamplighter {

// Acceptance of tokens that are vectors of C channels (continuous speculative decoding, Wang et al. 2024,
// arXiv 2411.11925, sections 3.2 and 3.3): p is the target's diagonal Gaussian of the last denoising step, q
// the draft's. All sums are fp64 and one channel after the other, logarithms are never undone: the same bits
// on every device. What is not finite, or a deviation that is not > 0, makes the ratio NaN, which no test
// accepts.
struct GaussianPairs {
  const float* target_mean;       // [rows, channels], as the others
  const float* target_deviation;  // > 0
  const float* draft_mean;
  const float* draft_deviation;  // > 0
  int64_t rows;
  int64_t channels;
};

// gaussian_log_ratio: log p(x) - log q(x).
struct GaussianLogRatioArgs {
  GaussianPairs pairs;
  const float* x;  // [rows, channels]
  double* out;     // out [rows]
};

// gaussian_residual: acceptance and rejection of proposals y = mu_p + sd_p * noise of p, in order, for a
// token of norm((S p - q)+), S = e^log_sigma: y is accepted where uniform < max(0, 1 - q(y) / (S p(y))).
// tries: the number of the first one accepted, from 1 on; 0: none was, and the token is the last proposal.
struct GaussianResidualArgs {
  GaussianPairs pairs;
  const double* log_sigma;  // [rows]
  const float* noise;       // [rows, proposals, channels]
  const double* uniforms;   // [rows, proposals] of [0, 1), multiples of 2^-53
  float* token;             // out [rows, channels]
  int64_t* tries;           // out [rows]
  int64_t proposals;        // > 0
};

// CPU kernels over the rows [begin, end).
template <Isa isa>
void gaussian_log_ratio_cpu(const GaussianLogRatioArgs& args, int64_t begin, int64_t end);
template <Isa isa>
void gaussian_residual_cpu(const GaussianResidualArgs& args, int64_t begin, int64_t end);

// All rows on `stream` (a cudaStream_t): a thread each, and a block each.
void gaussian_log_ratio_cuda(const GaussianLogRatioArgs& args, void* stream);
void gaussian_residual_cuda(const GaussianResidualArgs& args, void* stream);

}  // namespace lamplighter
