#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/machine/energy.h"
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
  std::size_t batch_size = 1;
  std::size_t picture = 0;  // number of its request
  // Of the whole batch; nothing where the machine does not tell.
  std::optional<std::int64_t> peak_bytes = {};  // of memory, see peak_memory
  std::optional<double> joules = {};
};

struct BenchOptions {
  std::vector<BenchMethod> methods{{kBaseline, {}}};
  std::vector<Request> requests;
  std::vector<std::size_t> batch_sizes{1};  // requests drawn together
  int repeats = 5;                          // measured passes over all requests
  int warmup = 1;                           // batches of each method and size drawn before, not measured
  EnergyMeter* energy = nullptr;
};

// Called for every picture that was measured; the result's own statistics are the sample's. False ends the
// run (Error(ExitCode::interrupted)).
using SampleCallback = std::function<bool(const BenchSample& sample, const Result& result)>;

// Batches of `size` that `pictures` fill; fewer pictures than `size` are one batch.
std::size_t count_batches(std::size_t pictures, std::size_t size);

// Draws batch after batch of every size with every method; the method that comes first changes with every
// batch, so that all see the same noise of the machine. Only full batches are drawn: one that is not costs
// as much for fewer pictures. `engine` holds the largest batch. Throws what TextToImage::generate throws.
std::vector<BenchSample> run_bench(TextToImage& engine, const BenchOptions& options,
                                   const SampleCallback& on_sample = {},
                                   const ProgressCallback& on_progress = {});

}  // namespace lamplighter
