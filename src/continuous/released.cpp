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

// cspd as github.com/MarkXCloud/CSpD does it (commit d91f721), a picture by itself, in the log domain.
namespace lamplighter {
namespace {

// How much wider the Gaussians are that judge.
constexpr double kRelaxation = 42;

// What a picture does in a round of passes.
struct Step {
  ContinuousPicture* picture;
  std::int64_t count;   // tokens that come
  std::int64_t masked;  // that are left, of which guidance counts one at least
  bool by_target, judges;
};

std::int64_t drafted(const ContinuousPicture& picture) {
  return picture.drafted.mean.defined() ? picture.drafted.mean.size(0) : 0;
}

Step next_step(const ContinuousRun& run, ContinuousPicture& picture) {
  const std::int64_t steps = *run.method.steps, step = picture.rounds++;
  const std::int64_t left = picture.left() - drafted(picture);
  const bool last = step + 1 == steps;
  const std::int64_t masked = masked_after(run.shape.positions, steps, step, left);
  const bool by_target =
      static_cast<double>(step) <= shortest(*run.method.prefill_ratio) * static_cast<double>(steps);
  return {&picture, last ? left : left - masked, masked, by_target,
          !by_target && (last || step % *run.method.gamma == 0)};
}

// The tokens of these steps by one network: without the noise of the last denoising step.
ContinuousModel::Chain draw(const ContinuousRun& run, const ContinuousModel& model,
                            const std::vector<Step>& steps) {
  ContinuousBatch batch(run.shape);
  for (const Step& step : steps) {
    const ContinuousPicture& picture = *step.picture;
    batch.add_context(picture, picture.latents, picture.visible);
    const std::int64_t first = picture.drawn + drafted(picture);
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
  const ContinuousModel::Chain chain = draw(run, *run.target, steps);
  const at::Tensor finite = finite_tokens(chain);
  Cycle cycle;
  cycle.cycle_ms = cycle.score_ms = watch.lap();
  std::int64_t first = 0;
  for (const Step& step : steps) {
    ++step.picture->statistics.target_passes;
    check_finite(*step.picture, finite, first, step.count);
    step.picture->commit(chain.mean.narrow(0, first, step.count), cycle, false);
    first += step.count;
  }
}

void by_drafter(const ContinuousRun& run, const std::vector<Step>& steps) {
  if (steps.empty()) return;
  Stopwatch watch;
  const ContinuousModel::Chain chain = draw(run, *run.drafter, steps);
  std::int64_t first = 0;
  for (const Step& step : steps) {
    ContinuousPicture& picture = *step.picture;
    const ContinuousModel::Chain rows = rows_of(chain, first, step.count);
    const std::int64_t before = drafted(picture);
    const at::Tensor places =
        places_of(picture, picture.drawn + before, step.count).to(picture.latents.device());
    picture.latents.index_copy_(0, places, rows.mean);
    picture.visible.index_fill_(0, places, true);
    ContinuousModel::Chain& all = picture.drafted;
    all = before == 0 ? rows
                      : ContinuousModel::Chain{at::cat({all.mean, rows.mean}),
                                               at::cat({all.deviation, rows.deviation}),
                                               at::cat({all.log_deviations, rows.log_deviations})};
    first += step.count;
  }
  const double ms = watch.lap();
  for (const Step& step : steps) {
    step.picture->statistics.draft_ms += ms;
    step.picture->statistics.cycle_ms += ms;
  }
}

// Proposals are made for all rows, the accepted ones, too, until every one had one that passed; of those that
// passed, the last one counts. Rows without one become zeros.
at::Tensor replacements(const Rejected& rejected, std::int64_t cap) {
  std::vector<std::int64_t> rows(rejected.pictures.size());
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  const Proposals all = propose(rejected, rows, 0, cap);
  const auto draw = [&](const at::Tensor& normals, const at::Tensor& uniforms) {
    return ops::gaussian_residual(rejected.pair, rejected.log_sigma, normals, uniforms);
  };
  const at::Tensor first = std::get<1>(draw(all.normals, all.uniforms));
  const std::int64_t rounds = first.min().item<std::int64_t>() == 0 ? cap : first.max().item<std::int64_t>();
  const auto [tokens, tries] = draw(all.normals.narrow(1, 0, rounds).flip(1).contiguous(),
                                    all.uniforms.narrow(1, 0, rounds).flip(1).contiguous());
  Statistics& statistics = rejected.pictures.front()->statistics;
  statistics.proposals += rounds * static_cast<std::int64_t>(rows.size());
  const at::Tensor none = tries.eq(0);
  statistics.fallbacks += none.sum().item<std::int64_t>();
  return tokens.masked_fill(none.unsqueeze(1), 0);
}

// The target's view of a block: it sees what was judged before, at the guidance of the step that judges.
ContinuousModel::Chain score(const ContinuousRun& run, const Step& step) {
  ContinuousPicture& picture = *step.picture;
  at::Tensor seen = at::zeros_like(picture.visible);
  seen.index_fill_(0, places_of(picture, 0, picture.drawn).to(seen.device()), true);
  ContinuousBatch batch(run.shape);
  batch.add_context(picture, picture.latents, seen);
  for (std::int64_t j = 0; j < drafted(picture); ++j) batch.add_token(picture.drawn + j, step.masked);
  ++picture.statistics.target_passes;
  ContinuousModel::Chain chain = batch.run(*run.target).chain;
  check_finite(picture, finite_tokens(chain), 0, drafted(picture));
  return chain;
}

void judge(const ContinuousRun& run, const Step& step) {
  Stopwatch watch;
  Cycle cycle;
  ContinuousPicture& picture = *step.picture;
  const ContinuousModel::Chain target = score(run, step);
  cycle.score_ms = watch.lap();
  const ContinuousModel::Chain draft = std::exchange(picture.drafted, {});
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
    const std::int64_t position = picture.place(picture.drawn + j);
    rows.pictures.push_back(&picture);
    rows.positions.push_back(position);
    accepted.push_back(log_chance.const_data_ptr<double>()[j] > std::log(picture.draws->judging(position)));
  }
  cycle.accepted = std::count(accepted.begin(), accepted.end(), std::uint8_t{1});
  at::Tensor tokens = draft.mean;
  if (cycle.accepted < count) {
    const at::Tensor kept = at::tensor(accepted, at::kByte).to(at::kBool).to(tokens.device()).unsqueeze(1);
    tokens = at::where(kept, tokens, replacements(rows, *run.method.cap));
  }
  cycle.judge_ms = watch.lap();
  cycle.cycle_ms = cycle.score_ms + cycle.judge_ms;
  picture.commit(tokens, cycle, true);
}

}  // namespace

void advance_released(const ContinuousRun& run, const std::vector<ContinuousPicture*>& pictures) {
  std::vector<Step> target, drafter;
  for (ContinuousPicture* picture : pictures) {
    const Step step = next_step(run, *picture);
    (step.by_target ? target : drafter).push_back(step);
  }
  by_target(run, target);
  by_drafter(run, drafter);
  for (const Step& step : drafter) {
    if (step.judges) judge(run, step);
  }
}

}  // namespace lamplighter
