#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/machine/energy.h"
#include "draft/registry.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

struct BenchMethod {
  std::string name;  // as the user wrote it; speed-ups are relative to kBaseline
  MethodOptions options;
};

// One image generated once with one method.
struct BenchSample {
  std::string method;
  int repeat = 0;
  std::size_t batch = 0;  // images of a batch share their times
  std::uint64_t seed = 0;
  Statistics statistics;
  std::size_t batch_size = 1;
  std::size_t image = 0;  // index of its request
  // Values of the whole batch; empty where the machine does not report them.
  std::optional<std::int64_t> peak_bytes = {};  // see peak_memory
  std::optional<double> joules = {};
};

struct BenchOptions {
  std::vector<BenchMethod> methods{{kBaseline, {}}};
  std::vector<Request> requests;
  std::vector<std::size_t> batch_sizes{1};  // requests generated together
  int repeats = 5;                          // measured runs over all requests
  int warmup = 1;                           // unmeasured batches per method and size before the run
  EnergyMeter* energy = nullptr;
};

// Called after every measured image. The sample has taken over the result's statistics. Return false to end
// the run (Error(ExitCode::interrupted)).
using SampleCallback = std::function<bool(const BenchSample& sample, const Result& result)>;

// Number of full batches of `size` images; 1 when there are fewer images.
std::size_t count_batches(std::size_t images, std::size_t size);

// Generates every batch of every size with every method. The first method rotates from batch to batch, so
// that noise of the machine affects all methods alike. Partial batches are skipped, because they cost as much
// as full ones. `engine` must hold the largest batch. Throws like TextToImage::generate.
std::vector<BenchSample> run_bench(TextToImage& engine, const BenchOptions& options,
                                   const SampleCallback& on_sample = {},
                                   const ProgressCallback& on_progress = {});

}  // namespace lamplighter
