#pragma once

#include "kernels/common/numbers.h"
#include "kernels/continuous/gaussian.h"

// The operators for one row, written once for every executor; meanings in kernels/continuous/gaussian.h.
namespace lamplighter::continuous {

LAMPLIGHTER_INLINE bool finite(double value) {
  constexpr double kLargest = 0x1.fffffep127;  // of fp32
  return value >= -kLargest && value <= kLargest;
}

// log N(x; mean, deviation) + log(2 pi) / 2, or NaN.
LAMPLIGHTER_INLINE double log_density(double x, double mean, double deviation) {
  if (!finite(x) || !finite(mean) || !finite(deviation) || !(deviation > 0.0))
    return bits_double(0x7FF8000000000000U);
  const double distance = (x - mean) / deviation;
  return -0.5 * product(distance, distance) - natural_log(deviation);
}

// log p(x) - log q(x) of a row; value(c): channel c of x.
template <class Value>
LAMPLIGHTER_INLINE double log_ratio(const GaussianPairs& pairs, int64_t row, Value value) {
  const int64_t start = row * pairs.channels;
  double sum = 0.0;
  for (int64_t c = 0; c < pairs.channels; ++c) {
    const double x = value(c);
    sum += log_density(x, pairs.target_mean[start + c], pairs.target_deviation[start + c]) -
           log_density(x, pairs.draft_mean[start + c], pairs.draft_deviation[start + c]);
  }
  return sum;
}

LAMPLIGHTER_INLINE void log_ratio_row(const GaussianLogRatioArgs& args, int64_t row) {
  const float* x = args.x + row * args.pairs.channels;
  args.out[row] = log_ratio(args.pairs, row, [=](int64_t c) { return x[c]; });
}

// Channel c of a proposal.
LAMPLIGHTER_INLINE float drafted(const GaussianResidualArgs& args, int64_t row, int64_t proposal, int64_t c) {
  const int64_t channels = args.pairs.channels, index = row * channels + c;
  const double noise = args.noise[(row * args.proposals + proposal) * channels + c];
  // The product of two fp32 numbers is exact in fp64, and the sum is rounded alike everywhere.
  return static_cast<float>(args.pairs.target_mean[index] +
                            product(args.pairs.target_deviation[index], noise));
}

// uniform < 1 - e^-a in logarithms: a > -log(1 - uniform), where the difference is exact.
LAMPLIGHTER_INLINE bool accepted(const GaussianResidualArgs& args, int64_t row, int64_t proposal) {
  const double a = args.log_sigma[row] +
                   log_ratio(args.pairs, row, [&](int64_t c) { return drafted(args, row, proposal, c); });
  return a > -natural_log(1.0 - args.uniforms[row * args.proposals + proposal]);
}

template <class Executor>
LAMPLIGHTER_INLINE void residual_row(Executor& executor, const GaussianResidualArgs& args, int64_t row) {
  const int n = static_cast<int>(args.proposals);
  const int first = executor.reduce(
      n, n, [&](int proposal) { return accepted(args, row, proposal) ? proposal : n; },
      [](int a, int b) { return b < a ? b : a; });
  const int64_t kept = first < n ? first : n - 1;
  executor.for_each(static_cast<int>(args.pairs.channels),
                    [&](int c) { args.token[row * args.pairs.channels + c] = drafted(args, row, kept, c); });
  executor.for_each(1, [&](int) { args.tries[row] = first < n ? first + 1 : 0; });
}

}  // namespace lamplighter::continuous
