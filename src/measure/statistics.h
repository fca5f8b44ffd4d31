#pragma once

#include <cstddef>
#include <vector>

namespace lamplighter {

double mean_of(const std::vector<double>& values);  // needs at least one value

// Summary of a quantity over samples. Quantiles interpolate linearly between order statistics.
struct Summary {
  double mean = 0, min = 0, p10 = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};
Summary summarise(std::vector<double> values);

// Mean over independent units (images, batches, rounds) with its 95 % confidence interval, which is NaN for
// one unit.
struct Interval {
  double mean = 0, low = 0, high = 0;
  std::size_t count = 0;
};

// Bootstrap interval: resamples the units 10,000 times with replacement from a fixed seed. Its ends are
// quantiles of the means, moved out from 2.5 and 97.5 % as far as Student's t exceeds the normal
// distribution; this corrects plain percentiles, which are too narrow for few units (Hesterberg 2015,
// "expanded percentile"). With fewer than kLeastResampled units it returns Student's interval, because
// resampling cannot show their spread.
constexpr std::size_t kLeastResampled = 5;
Interval mean_interval(const std::vector<double>& units);
// The same for ratios of pairs: geometric mean, computed from logarithms.
Interval ratio_interval(const std::vector<double>& ratios);

}  // namespace lamplighter
