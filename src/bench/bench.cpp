#include "bench/bench.h"

#include <algorithm>

#include "lamplighter/error.h"

namespace lamplighter {

std::vector<BenchSample> run_bench(TextToImage& engine, const BenchOptions& options,
                                   const std::function<bool(const BenchSample&)>& on_sample,
                                   const ProgressCallback& on_progress) {
  const std::vector<Request>& requests = options.requests;
  const std::size_t size = std::max<std::size_t>(1, options.batch_size);
  const std::size_t batches = (requests.size() + size - 1) / size;
  std::vector<BenchSample> samples;
  const auto draw = [&](const BenchMethod& method, std::size_t batch, int repeat) {
    const auto begin = requests.begin() + static_cast<std::ptrdiff_t>(batch * size);
    const auto end =
        requests.begin() + static_cast<std::ptrdiff_t>(std::min(requests.size(), (batch + 1) * size));
    const std::vector<Request> together(begin, end);
    engine.generate(
        together,
        [&](std::size_t index, Result&& result) {
          if (repeat < 0) return;
          samples.push_back({method.name, repeat, batch, together[index].seed, std::move(result.statistics)});
          if (on_sample && !on_sample(samples.back())) throw Error(ExitCode::interrupted, "stopped");
        },
        on_progress, method.options);
  };
  for (const BenchMethod& method : options.methods) draw(method, 0, -1);
  const std::size_t methods = options.methods.size();
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (std::size_t batch = 0; batch < batches; ++batch) {
      const std::size_t first = batch + static_cast<std::size_t>(repeat);
      for (std::size_t turn = 0; turn < methods; ++turn)
        draw(options.methods[(first + turn) % methods], batch, repeat);
    }
  }
  return samples;
}

}  // namespace lamplighter
