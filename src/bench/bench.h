#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lamplighter/pipeline.h"

namespace lamplighter {

// One measured run of one method over one batch of pictures.
struct BenchSample {
  std::string method;
  int repeat = 0;
  std::uint64_t seed = 0;
  Statistics statistics;
};

// Distribution of a quantity over samples.
struct Summary {
  double mean = 0, min = 0, p10 = 0, p50 = 0, p90 = 0, max = 0;
};
Summary summarise(std::vector<double> values);

struct BenchReport {
  std::string method;
  std::size_t samples = 0;
  Summary token_ms;           // decode milliseconds per token of a picture (prefill not counted)
  Summary tokens_per_second;  // image tokens per second of decode time, all pictures of the batch
  Summary text_ms, prefill_ms, decode_ms, image_ms;
  double tokens_per_pass = 0;  // step compression: tokens per target pass
};

struct BenchOptions {
  std::vector<std::string> methods{"ar"};
  std::vector<Request> requests;
  int repeats = 5;  // measured passes over all requests, after one that is thrown away
};

// Draws every request with every method, interleaved: all methods see the same noise of the machine.
// Throws Error(ExitCode::usage) for an unknown method.
std::vector<BenchSample> run_bench(TextToImage& engine, const BenchOptions& options,
                                   const std::function<bool(const BenchSample&)>& on_sample = {},
                                   const ProgressCallback& on_progress = {});

// One report per method, in the order of first appearance.
std::vector<BenchReport> report(const std::vector<BenchSample>& samples);

}  // namespace lamplighter
