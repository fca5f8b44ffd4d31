#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lamplighter/pipeline.h"
#include "propose/registry.h"

namespace lamplighter {

struct BenchMethod {
  std::string name;  // as it was written; kBaseline is what speed-ups are over
  MethodOptions options;
};

// One picture drawn once with one method.
struct BenchSample {
  std::string method;
  int repeat = 0;
  std::size_t batch = 0;  // pictures of one batch share their times
  std::uint64_t seed = 0;
  Statistics statistics;
};

// Distribution of a quantity over samples.
struct Summary {
  double mean = 0, min = 0, p10 = 0, p50 = 0, p90 = 0, max = 0;
};
Summary summarise(std::vector<double> values);

// A mean and its 95 % confidence interval (Student's t); without an interval (NaN) when there is one value.
struct Interval {
  double mean = 0, low = 0, high = 0;
  std::size_t count = 0;
};
Interval mean_interval(const std::vector<double>& values);
// The same of ratios: the geometric mean, from the logarithms.
Interval ratio_interval(const std::vector<double>& ratios);

struct BenchReport {
  std::string method;
  std::size_t samples = 0;    // batches drawn, repeats counted
  Summary token_ms;           // decode milliseconds per token of a picture (prefill not counted)
  Summary tokens_per_second;  // image tokens per second of decode time, all pictures of the batch
  Summary text_ms, prefill_ms, decode_ms, image_ms;
  double tokens_per_pass = 0;    // step compression: tokens per target pass, mean over pictures
  double acceptance_length = 0;  // tokens per cycle, bonus token included, mean over pictures
  std::vector<double> reached;   // [d]: share of cycles whose path reached depth d + 1
  double cycle_ms = 0;           // mean per cycle
  double draft_ms = 0, score_ms = 0, judge_ms = 0, commit_ms = 0;  // its parts, where they are known
  // Time of ar over time of this method, prefill and decode, paired batch by batch. Repeats of a batch are
  // averaged first: they tell of the machine's noise, not of pictures. With one batch the repeats are all
  // there is.
  Interval speedup;
};

struct BenchOptions {
  std::vector<BenchMethod> methods{{kBaseline, {}}};
  std::vector<Request> requests;
  std::size_t batch_size = 1;  // requests drawn together
  int repeats = 5;             // measured passes over all requests
};

// Draws batch after batch with every method; the method that comes first changes with every batch, so that
// all see the same noise of the machine. The first batch is drawn once more before that, not measured: it
// warms caches. Throws what TextToImage::generate throws.
std::vector<BenchSample> run_bench(TextToImage& engine, const BenchOptions& options,
                                   const std::function<bool(const BenchSample&)>& on_sample = {},
                                   const ProgressCallback& on_progress = {});

// One report per method, in the order of first appearance.
std::vector<BenchReport> report(const std::vector<BenchSample>& samples);

}  // namespace lamplighter
