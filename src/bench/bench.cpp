#include "bench/bench.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lamplighter/error.h"

namespace lamplighter {

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
  summary.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  summary.min = values.front();
  summary.p10 = quantile(0.1);
  summary.p50 = quantile(0.5);
  summary.p90 = quantile(0.9);
  summary.max = values.back();
  return summary;
}

std::vector<BenchSample> run_bench(TextToImage& engine, const BenchOptions& options,
                                   const std::function<bool(const BenchSample&)>& on_sample,
                                   const ProgressCallback& on_progress) {
  for (const std::string& method : options.methods) {
    if (method != "ar") throw Error(ExitCode::usage, "--methods: got '" + method + "', expected ar");
  }
  std::vector<BenchSample> samples;
  for (int repeat = -1; repeat < options.repeats; ++repeat) {
    for (const std::string& method : options.methods) {
      std::vector<BenchSample> round;
      engine.generate(
          options.requests,
          [&](std::size_t index, Result&& result) {
            round.push_back({method, repeat, options.requests[index].seed, result.statistics});
          },
          on_progress);
      if (repeat < 0) continue;  // the first pass warms caches and branch predictors
      for (const BenchSample& sample : round) {
        samples.push_back(sample);
        if (on_sample && !on_sample(sample)) throw Error(ExitCode::interrupted, "stopped");
      }
    }
  }
  return samples;
}

std::vector<BenchReport> report(const std::vector<BenchSample>& samples) {
  std::vector<std::string> methods;
  for (const BenchSample& sample : samples) {
    if (std::find(methods.begin(), methods.end(), sample.method) == methods.end())
      methods.push_back(sample.method);
  }
  std::vector<BenchReport> reports;
  for (const std::string& method : methods) {
    std::vector<Statistics> of_method;
    for (const BenchSample& sample : samples) {
      if (sample.method == method) of_method.push_back(sample.statistics);
    }
    const auto over = [&](auto get) {
      std::vector<double> values;
      for (const Statistics& statistics : of_method) values.push_back(get(statistics));
      return summarise(std::move(values));
    };
    BenchReport result;
    result.method = method;
    result.samples = of_method.size();
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
    result.tokens_per_pass = over([](const Statistics& s) {
                               return static_cast<double>(s.tokens) / static_cast<double>(s.target_passes);
                             }).mean;
    reports.push_back(std::move(result));
  }
  return reports;
}

}  // namespace lamplighter
