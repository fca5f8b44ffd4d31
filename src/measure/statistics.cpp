#include "measure/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>

namespace lamplighter {
namespace {

// Quantile of sorted values.
double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (position - static_cast<double>(low));
}

// The 97.5 % quantile of Student's t. Beyond the table a series in 1 / degrees, accurate to 0.0001.
double student(std::size_t degrees) {
  static constexpr std::array<double, 30> kTable{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                                 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                                 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                                 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees <= kTable.size()) return kTable[degrees - 1];
  const double inverse = 1 / static_cast<double>(degrees);
  return 1.95996 + inverse * (2.37227 + inverse * 2.8225);
}

// Half-width of Student's interval.
double student_half(const std::vector<double>& units, double mean) {
  double squares = 0;
  for (const double unit : units) squares += (unit - mean) * (unit - mean);
  const auto count = static_cast<double>(units.size());
  return student(units.size() - 1) * std::sqrt(squares / (count - 1) / count);
}

// Sorted means of bootstrap samples of the units.
std::vector<double> resampled_means(const std::vector<double>& units) {
  constexpr std::size_t kResamples = 10'000;
  std::mt19937 generator(20'260'101);
  std::vector<double> means(kResamples);
  for (double& mean : means) {
    for (std::size_t i = 0; i < units.size(); ++i)
      mean += units[std::uint64_t{generator()} * units.size() >> 32];
    mean /= static_cast<double>(units.size());
  }
  std::sort(means.begin(), means.end());
  return means;
}

}  // namespace

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Summary summarise(std::vector<double> values) {
  Summary summary;
  if (values.empty()) return summary;
  std::sort(values.begin(), values.end());
  summary.mean = mean_of(values);
  summary.min = values.front();
  summary.p10 = quantile(values, 0.1);
  summary.p50 = quantile(values, 0.5);
  summary.p90 = quantile(values, 0.9);
  summary.p99 = quantile(values, 0.99);
  summary.max = values.back();
  return summary;
}

Interval mean_interval(const std::vector<double>& units) {
  Interval interval;
  interval.count = units.size();
  if (units.empty()) return interval;
  interval.mean = mean_of(units);
  interval.low = interval.high = std::numeric_limits<double>::quiet_NaN();
  if (units.size() < 2) return interval;
  if (units.size() < kLeastResampled) {
    const double half = student_half(units, interval.mean);
    interval.low = interval.mean - half;
    interval.high = interval.mean + half;
    return interval;
  }
  const auto count = static_cast<double>(units.size());
  const double deviations = student(units.size() - 1) * std::sqrt(count / (count - 1));
  const double tail = std::erfc(deviations / std::sqrt(2.0)) / 2;
  const std::vector<double> means = resampled_means(units);
  interval.low = quantile(means, tail);
  interval.high = quantile(means, 1 - tail);
  return interval;
}

Interval ratio_interval(const std::vector<double>& ratios) {
  std::vector<double> logarithms;
  for (const double ratio : ratios) logarithms.push_back(std::log(ratio));
  const Interval interval = mean_interval(logarithms);
  if (interval.count == 0) return interval;
  return {std::exp(interval.mean), std::exp(interval.low), std::exp(interval.high), interval.count};
}

}  // namespace lamplighter
