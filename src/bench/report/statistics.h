#pragma once

#include <cstddef>
#include <vector>

namespace lamplighter {

double mean_of(const std::vector<double>& values);  // one at least

// Distribution of a quantity over samples; quantiles by linear interpolation between order statistics.
struct Summary {
  double mean = 0, min = 0, p10 = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};
Summary summarise(std::vector<double> values);

// A mean over independent units (pictures, batches, rounds) and its 95 % confidence interval, which is NaN
// for one unit.
struct Interval {
  double mean = 0, low = 0, high = 0;
  std::size_t count = 0;
};

// By the bootstrap: the units are drawn again with replacement 10,000 times, from a fixed seed, and the ends
// are quantiles of the means. They lie outside 2.5 and 97.5 % as far as Student's t lies outside the normal
// law, which undoes the narrowness of plain percentiles for few units (Hesterberg 2015, "expanded
// percentile"). Fewer than kLeastResampled units cannot show their spread by being drawn again: they have
// Student's own interval.
constexpr std::size_t kLeastResampled = 5;
Interval mean_interval(const std::vector<double>& units);
// The same of ratios, each of a pair: the geometric mean, from the logarithms.
Interval ratio_interval(const std::vector<double>& ratios);

}  // namespace lamplighter
