#include <algorithm>
#include <cmath>

#include "base/stopwatch.h"
#include "continuous/loop.h"

namespace lamplighter {

std::int64_t masked_after(std::int64_t positions, std::int64_t passes, std::int64_t pass,
                          std::int64_t masked) {
  constexpr double kQuarter = 1.57079632679489661923;  // of a turn
  const double share = std::cos(kQuarter * static_cast<double>(pass + 1) / static_cast<double>(passes));
  const auto scheduled = static_cast<std::int64_t>(std::floor(static_cast<double>(positions) * share));
  return std::max<std::int64_t>(1, std::min(masked - 1, scheduled));
}

void advance_parallel(const ContinuousRun& run, const std::vector<ContinuousImage*>& images) {
  Stopwatch watch;
  const std::int64_t passes = *run.method.steps;
  ContinuousBatch batch(run.shape);
  std::vector<std::int64_t> counts;
  for (ContinuousImage* image : images) {
    const std::int64_t pass = image->rounds++;
    ++image->statistics.target_passes;
    const std::int64_t masked = masked_after(run.shape.positions, passes, pass, image->left());
    counts.push_back(pass + 1 == passes ? image->left() : image->left() - masked);
    batch.add_context(*image, image->latents, image->visible);
    for (std::int64_t k = 0; k < counts.back(); ++k) batch.add_token(image->sampled + k, masked);
  }
  const ContinuousBatch::Result result = batch.run(*run.target);
  const at::Tensor finite = finite_tokens(result.chain);
  const at::Tensor tokens = run.method.last_noise == "on" ? result.sample() : result.chain.mean;
  Cycle cycle;
  cycle.cycle_ms = cycle.score_ms = watch.lap();
  std::int64_t first = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    check_finite(*images[i], finite, first, counts[i]);
    images[i]->commit(tokens.narrow(0, first, counts[i]), cycle, false);
    first += counts[i];
  }
}

}  // namespace lamplighter
