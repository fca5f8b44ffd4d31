#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "bench/bench.h"

namespace lamplighter {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The 97.5 % quantile of Student's t; beyond the table a series in 1 / degrees that is right to 0.0001.
double student(std::size_t degrees) {
  static constexpr std::array<double, 30> kTable{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                                 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                                 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                                 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees <= kTable.size()) return kTable[degrees - 1];
  const double inverse = 1 / static_cast<double>(degrees);
  return 1.95996 + inverse * (2.37227 + inverse * 2.8225);
}

// Time of drawing tokens: what the method changes.
double drawing_ms(const Statistics& statistics) {
  return statistics.prefill_ms + statistics.decode_ms;
}

// The picture that took longest stands for its batch and repeat: all of them began together.
using Batches = std::map<std::pair<std::size_t, int>, const Statistics*>;
Batches batches_of(const std::vector<BenchSample>& samples, const std::string& method) {
  Batches batches;
  for (const BenchSample& sample : samples) {
    if (sample.method != method) continue;
    const Statistics*& longest = batches[{sample.batch, sample.repeat}];
    if (longest == nullptr || drawing_ms(sample.statistics) > drawing_ms(*longest))
      longest = &sample.statistics;
  }
  return batches;
}

Interval speedup_of(const Batches& baseline, const Batches& batches) {
  std::map<std::size_t, std::vector<double>> logarithms;
  for (const auto& [key, statistics] : batches) {
    const auto other = baseline.find(key);
    if (other == baseline.end()) continue;
    logarithms[key.first].push_back(std::log(drawing_ms(*other->second) / drawing_ms(*statistics)));
  }
  std::vector<double> ratios;
  for (const auto& [batch, values] : logarithms) {
    if (logarithms.size() > 1) {
      ratios.push_back(std::exp(mean_of(values)));
    } else {
      for (const double value : values) ratios.push_back(std::exp(value));
    }
  }
  return ratio_interval(ratios);
}

// What pictures tell of acceptance. Repeats give the same tokens again, so they change no mean.
void add_acceptance(const std::vector<BenchSample>& samples, const std::string& method, BenchReport& result) {
  std::vector<double> compression, length;
  double cycles = 0;
  for (const BenchSample& sample : samples) {
    if (sample.method != method) continue;
    const Statistics& s = sample.statistics;
    compression.push_back(s.step_compression());
    length.push_back(s.acceptance_length());
    cycles += static_cast<double>(s.cycles.size());
    result.reached.resize(std::max(result.reached.size(), s.accepted.size()));
    for (std::size_t d = 0; d < s.accepted.size(); ++d)
      result.reached[d] += static_cast<double>(s.accepted[d]);
    result.cycle_ms += s.cycle_ms;
    result.draft_ms += s.draft_ms;
    result.score_ms += s.score_ms;
    result.judge_ms += s.judge_ms;
    result.commit_ms += s.commit_ms;
  }
  result.tokens_per_pass = mean_of(compression);
  result.acceptance_length = mean_of(length);
  cycles = std::max(cycles, 1.0);
  for (double& share : result.reached) share /= cycles;
  for (double* ms :
       {&result.cycle_ms, &result.draft_ms, &result.score_ms, &result.judge_ms, &result.commit_ms})
    *ms /= cycles;
}

}  // namespace

Summary summarise(std::vector<double> values) {
  Summary summary;
  if (values.empty()) return summary;
  std::sort(values.begin(), values.end());
  // Linear interpolation between order statistics.
  const auto quantile = [&](double q) {
    const double place = q * static_cast<double>(values.size() - 1);
    const std::size_t low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
  };
  summary.mean = mean_of(values);
  summary.min = values.front();
  summary.p10 = quantile(0.1);
  summary.p50 = quantile(0.5);
  summary.p90 = quantile(0.9);
  summary.max = values.back();
  return summary;
}

Interval mean_interval(const std::vector<double>& values) {
  Interval interval;
  interval.count = values.size();
  if (values.empty()) return interval;
  interval.mean = mean_of(values);
  interval.low = interval.high = std::numeric_limits<double>::quiet_NaN();
  if (values.size() < 2) return interval;
  double squares = 0;
  for (const double value : values) squares += (value - interval.mean) * (value - interval.mean);
  const double count = static_cast<double>(values.size());
  const double half = student(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  interval.low = interval.mean - half;
  interval.high = interval.mean + half;
  return interval;
}

Interval ratio_interval(const std::vector<double>& ratios) {
  std::vector<double> logarithms;
  for (const double ratio : ratios) logarithms.push_back(std::log(ratio));
  Interval interval = mean_interval(logarithms);
  if (interval.count == 0) return interval;
  return {std::exp(interval.mean), std::exp(interval.low), std::exp(interval.high), interval.count};
}

std::vector<BenchReport> report(const std::vector<BenchSample>& samples) {
  std::vector<std::string> methods;
  for (const BenchSample& sample : samples) {
    if (std::find(methods.begin(), methods.end(), sample.method) == methods.end())
      methods.push_back(sample.method);
  }
  const Batches baseline = batches_of(samples, kBaseline);
  std::vector<BenchReport> reports;
  for (const std::string& method : methods) {
    const Batches batches = batches_of(samples, method);
    const auto over = [&](auto get) {
      std::vector<double> values;
      for (const auto& [key, statistics] : batches) values.push_back(get(*statistics));
      return summarise(std::move(values));
    };
    BenchReport result;
    result.method = method;
    result.samples = batches.size();
    // The first token comes out of the prefill.
    const auto decoded = [](const Statistics& s) {
      return static_cast<double>(std::max<std::int64_t>(1, s.tokens - 1));
    };
    result.token_ms = over([&](const Statistics& s) { return s.decode_ms / decoded(s); });
    result.tokens_per_second =
        over([&](const Statistics& s) { return 1000.0 * s.batch * decoded(s) / s.decode_ms; });
    result.text_ms = over([](const Statistics& s) { return s.text_ms; });
    result.prefill_ms = over([](const Statistics& s) { return s.prefill_ms; });
    result.decode_ms = over([](const Statistics& s) { return s.decode_ms; });
    result.image_ms = over([](const Statistics& s) { return s.image_ms; });
    result.speedup = speedup_of(baseline, batches);
    add_acceptance(samples, method, result);
    reports.push_back(std::move(result));
  }
  return reports;
}

}  // namespace lamplighter
