#include "bench/bench.h"

#include <algorithm>
#include <utility>

#include "device/machine.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

// One batch in one repeat. Its shared numbers are known once its last image is finished.
struct BatchRun {
  const BenchMethod& method;
  std::size_t size = 1, batch = 0;
  int repeat = 0;
};

class Runner {
 public:
  Runner(TextToImage& engine, const BenchOptions& options, const SampleCallback& on_sample,
         const ProgressCallback& on_progress)
      : engine_(engine), options_(options), on_sample_(on_sample), on_progress_(on_progress) {}

  void warm_up(const BatchRun& run) {
    engine_.generate(
        requests(run), [](std::size_t, Result&&) {}, on_progress_, run.method.options);
  }

  void measure(const BatchRun& run) {
    const std::vector<Request> together = requests(run);
    const c10::Device device(engine_.device());
    std::vector<Result> results;
    const bool fresh = reset_peak_memory(device);
    if (options_.energy != nullptr) options_.energy->lap();
    engine_.generate(
        together, [&](std::size_t, Result&& result) { results.push_back(std::move(result)); }, on_progress_,
        run.method.options);
    const std::optional<double> joules = options_.energy != nullptr ? options_.energy->lap() : std::nullopt;
    for (std::size_t i = 0; i < results.size(); ++i) {
      BenchSample sample{run.method.name, run.repeat, run.batch, together[i].seed, results[i].statistics};
      sample.batch_size = run.size;
      sample.image = run.batch * run.size + i;
      if (fresh) sample.peak_bytes = peak_memory(device);
      sample.joules = joules;
      samples_.push_back(std::move(sample));
      if (on_sample_ && !on_sample_(samples_.back(), results[i]))
        throw Error(ExitCode::interrupted, "stopped");
    }
  }

  std::vector<BenchSample> take() { return std::move(samples_); }

 private:
  std::vector<Request> requests(const BatchRun& run) const {
    const std::vector<Request>& all = options_.requests;
    const std::size_t begin = run.batch * run.size, end = std::min(all.size(), begin + run.size);
    return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
  }

  TextToImage& engine_;
  const BenchOptions& options_;
  const SampleCallback& on_sample_;
  const ProgressCallback& on_progress_;
  std::vector<BenchSample> samples_;
};

}  // namespace

std::size_t count_batches(std::size_t images, std::size_t size) {
  return std::max<std::size_t>(1, images / size);
}

std::vector<BenchSample> run_bench(TextToImage& engine, const BenchOptions& options,
                                   const SampleCallback& on_sample, const ProgressCallback& on_progress) {
  Runner runner(engine, options, on_sample, on_progress);
  const std::vector<BenchMethod>& methods = options.methods;
  for (const std::size_t size : options.batch_sizes) {
    const std::size_t batches = count_batches(options.requests.size(), size);
    for (std::size_t turn = 0; turn < static_cast<std::size_t>(options.warmup); ++turn) {
      for (const BenchMethod& method : methods) runner.warm_up({method, size, turn % batches, 0});
    }
  }
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (const std::size_t size : options.batch_sizes) {
      for (std::size_t batch = 0; batch < count_batches(options.requests.size(), size); ++batch) {
        const std::size_t first = batch + static_cast<std::size_t>(repeat);
        for (std::size_t turn = 0; turn < methods.size(); ++turn)
          runner.measure({methods[(first + turn) % methods.size()], size, batch, repeat});
      }
    }
  }
  return runner.take();
}

}  // namespace lamplighter
