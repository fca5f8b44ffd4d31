#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/json.h"
#include "base/stopwatch.h"
#include "continuous/loop.h"
#include "continuous/residual.h"

// cspd as github.com/MarkXCloud/CSpD does it (commit d91f721), an image by itself, in the log domain.
namespace lamplighter {
namespace {

// How much wider the Gaussians are that verify.
constexpr double kRelaxation = 42;

// What an image does in a round of passes.
struct Step {
  ContinuousImage* image;
  std::int64_t count;   // tokens that come
  std::int64_t masked;  // that are left, of which guidance counts one at least
  bool by_target, verifies;
};

std::int64_t drafted(const ContinuousImage& image) {
  return image.drafted.mean.defined() ? image.drafted.mean.size(0) : 0;
}

Step next_step(const ContinuousRun& run, ContinuousImage& image) {
  const std::int64_t steps = *run.method.steps, step = image.rounds++;
  const std::int64_t left = image.left() - drafted(image);
  const bool last = step + 1 == steps;
  const std::int64_t masked = masked_after(run.shape.positions, steps, step, left);
  const bool by_target =
      static_cast<double>(step) <= shortest(*run.method.prefill_ratio) * static_cast<double>(steps);
  return {&image, last ? left : left - masked, masked, by_target,
          !by_target && (last || step % *run.method.gamma == 0)};
}

// The tokens of these steps by one network: without the noise of the last denoising step.
ContinuousModel::Chain sample(const ContinuousRun& run, const ContinuousModel& model,
                              const std::vector<Step>& steps) {
  ContinuousBatch batch(run.shape);
  for (const Step& step : steps) {
    const ContinuousImage& image = *step.image;
    batch.add_context(image, image.latents, image.visible);
    const std::int64_t first = image.sampled + drafted(image);
    for (std::int64_t k = first; k < first + step.count; ++k) batch.add_token(k, step.masked);
  }
  return batch.run(model).chain;
}

ContinuousModel::Chain rows_of(const ContinuousModel::Chain& chain, std::int64_t first, std::int64_t count) {
  return {chain.mean.narrow(0, first, count), chain.deviation.narrow(0, first, count),
          chain.log_deviations.narrow(0, first, count)};
}

void by_target(const ContinuousRun& run, const std::vector<Step>& steps) {
  if (steps.empty()) return;
  Stopwatch watch;
  const ContinuousModel::Chain chain = sample(run, *run.target, steps);
  const at::Tensor finite = finite_tokens(chain);
  Cycle cycle;
  cycle.cycle_ms = cycle.score_ms = watch.lap();
  std::int64_t first = 0;
  for (const Step& step : steps) {
    ++step.image->statistics.target_passes;
    check_finite(*step.image, finite, first, step.count);
    step.image->commit(chain.mean.narrow(0, first, step.count), cycle, false);
    first += step.count;
  }
}

void by_drafter(const ContinuousRun& run, const std::vector<Step>& steps) {
  if (steps.empty()) return;
  Stopwatch watch;
  const ContinuousModel::Chain chain = sample(run, *run.drafter, steps);
  std::int64_t first = 0;
  for (const Step& step : steps) {
    ContinuousImage& image = *step.image;
    const ContinuousModel::Chain rows = rows_of(chain, first, step.count);
    const std::int64_t before = drafted(image);
    const at::Tensor positions =
        positions_of(image, image.sampled + before, step.count).to(image.latents.device());
    image.latents.index_copy_(0, positions, rows.mean);
    image.visible.index_fill_(0, positions, true);
    ContinuousModel::Chain& all = image.drafted;
    all = before == 0 ? rows
                      : ContinuousModel::Chain{at::cat({all.mean, rows.mean}),
                                               at::cat({all.deviation, rows.deviation}),
                                               at::cat({all.log_deviations, rows.log_deviations})};
    first += step.count;
  }
  const double ms = watch.lap();
  for (const Step& step : steps) {
    step.image->statistics.draft_ms += ms;
    step.image->statistics.cycle_ms += ms;
  }
}

// Proposals are made for all rows, the accepted ones, too, until every one had one that passed; of those that
// passed, the last one counts. Rows without one become zeros.
at::Tensor replacements(const Rejected& rejected, std::int64_t cap) {
  std::vector<std::int64_t> rows(rejected.images.size());
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  const Proposals all = sample_proposals(rejected, rows, 0, cap);
  const auto sample = [&](const at::Tensor& normals, const at::Tensor& uniforms) {
    return ops::gaussian_residual(rejected.pair, rejected.log_sigma, normals, uniforms);
  };
  const at::Tensor first = std::get<1>(sample(all.normals, all.uniforms));
  const std::int64_t rounds = first.min().item<std::int64_t>() == 0 ? cap : first.max().item<std::int64_t>();
  const auto [tokens, tries] = sample(all.normals.narrow(1, 0, rounds).flip(1).contiguous(),
                                      all.uniforms.narrow(1, 0, rounds).flip(1).contiguous());
  Statistics& statistics = rejected.images.front()->statistics;
  statistics.proposals += rounds * static_cast<std::int64_t>(rows.size());
  const at::Tensor none = tries.eq(0);
  statistics.fallbacks += none.sum().item<std::int64_t>();
  return tokens.masked_fill(none.unsqueeze(1), 0);
}

// The target's view of a block: it sees what was verified before, at the guidance of the step that verifies.
ContinuousModel::Chain score(const ContinuousRun& run, const Step& step) {
  ContinuousImage& image = *step.image;
  at::Tensor seen = at::zeros_like(image.visible);
  seen.index_fill_(0, positions_of(image, 0, image.sampled).to(seen.device()), true);
  ContinuousBatch batch(run.shape);
  batch.add_context(image, image.latents, seen);
  for (std::int64_t j = 0; j < drafted(image); ++j) batch.add_token(image.sampled + j, step.masked);
  ++image.statistics.target_passes;
  ContinuousModel::Chain chain = batch.run(*run.target).chain;
  check_finite(image, finite_tokens(chain), 0, drafted(image));
  return chain;
}

void verify(const ContinuousRun& run, const Step& step) {
  Stopwatch watch;
  Cycle cycle;
  ContinuousImage& image = *step.image;
  const ContinuousModel::Chain target = score(run, step);
  cycle.score_ms = watch.lap();
  const ContinuousModel::Chain draft = std::exchange(image.drafted, {});
  const std::int64_t count = draft.mean.size(0);
  const at::Tensor log_factor = (target.log_deviations - draft.log_deviations).sum(1);
  // The drafts are their means, so that their own exponents are 0; the relaxation cancels in the deviations.
  const at::Tensor log_chance =
      (log_factor + ops::gaussian_log_ratio(draft.mean, {target.mean, target.deviation * kRelaxation,
                                                         draft.mean, draft.deviation * kRelaxation}))
          .cpu();
  Rejected rows{{target.mean, target.deviation, draft.mean, draft.deviation}, log_factor, {}, {}};
  std::vector<std::uint8_t> accepted;
  for (std::int64_t j = 0; j < count; ++j) {
    const std::int64_t position = image.position(image.sampled + j);
    rows.images.push_back(&image);
    rows.positions.push_back(position);
    accepted.push_back(log_chance.const_data_ptr<double>()[j] >
                       std::log(image.samples->verification(position)));
  }
  cycle.accepted = std::count(accepted.begin(), accepted.end(), std::uint8_t{1});
  at::Tensor tokens = draft.mean;
  if (cycle.accepted < count) {
    const at::Tensor kept = at::tensor(accepted, at::kByte).to(at::kBool).to(tokens.device()).unsqueeze(1);
    tokens = at::where(kept, tokens, replacements(rows, *run.method.cap));
  }
  cycle.verify_ms = watch.lap();
  cycle.cycle_ms = cycle.score_ms + cycle.verify_ms;
  image.commit(tokens, cycle, true);
}

}  // namespace

void advance_official(const ContinuousRun& run, const std::vector<ContinuousImage*>& images) {
  std::vector<Step> target, drafter;
  for (ContinuousImage* image : images) {
    const Step step = next_step(run, *image);
    (step.by_target ? target : drafter).push_back(step);
  }
  by_target(run, target);
  by_drafter(run, drafter);
  for (const Step& step : drafter) {
    if (step.verifies) verify(run, step);
  }
}

}  // namespace lamplighter
