#include "decode/decode.h"

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <utility>

#include "decode/cycle.h"
#include "decode/draft_record.h"

namespace lamplighter {
namespace {

// A record is made between verification and commit.
RunShape with_whole_cycles(RunShape shape) {
  shape.whole_cycles = !shape.record;
  return shape;
}

}  // namespace

Error bad_target() {
  return {ExitCode::bundle,
          "target: got logits that are NaN or infinite, expected finite numbers; the weights are damaged "
          "or the dtype is too narrow for them"};
}

DecodeRun::DecodeRun(const Models& models, const Method& method, const RunShape& shape)
    : models_(models),
      method_(method),
      shape_(with_whole_cycles(shape)),
      state_(make(shape.images)),
      replay_(models.target->placement().device, shape.graph && state_.draft_method->replayable(),
              shape.note),
      slots_(shape.images),
      parts_(shape.grid->tokens()),
      reports_(state_) {}

DecodeState DecodeRun::make(std::int64_t slots) const {
  const c10::InferenceMode inference;
  RunShape own = shape_;
  own.images = slots;
  return empty_state(models_, method_, own);
}

void DecodeRun::drop(std::int64_t image) {
  const c10::InferenceMode inference;
  const std::int64_t part = parts_.drop(image);
  if (part >= 0) slots_.drop(part, state_);
}

std::optional<Report> DecodeRun::step(const PendingImages& images) {
  const c10::InferenceMode inference;
  StageClock clock(models_.target->placement().device, !replay_.captures());
  const std::vector<PendingImages> starting = parts_.begin(images);
  for (const PendingImages& some : starting) {
    slots_.place(begin(models_, method_, some, shape_), state_,
                 [this](std::int64_t slots) { return make(slots); });
  }
  if (!starting.empty()) clock.lap(&StageTimes::prefill);
  slots_.shrink(state_);
  const auto lap = [&](double StageTimes::*stage) { clock.lap(stage); };
  const auto record = [&](const Draft& draft, const Scores&, const Verified& verified) {
    record_ = record_draft(draft, verified, method_.verify.sampled);
    lap(&StageTimes::record);
  };
  replay_.run([&] { run_cycle(models_, method_, state_, lap, shape_.record ? Script(record) : Script()); });
  std::optional<Report> report = reports_.read(state_, std::move(clock), record_);
  if (!report) return report;
  slots_.release(*report, state_.run.counters.total);
  for (const std::int64_t part : parts_.gather(*report)) slots_.drop(part, state_);
  return report;
}

void decode(const Models& models, const Method& method, const RunShape& shape, const NextImages& next,
            const OnCycle& on_cycle) {
  DecodeRun run(models, method, shape);
  for (bool more = true;;) {
    PendingImages images;
    const std::int64_t free = run.free_slots();
    if (more && free > 0) {
      images = next(free);
      more = static_cast<std::int64_t>(images.requests.size()) == free;
    }
    if (images.requests.empty() && run.is_idle()) return;
    const std::optional<Report> report = run.step(images);
    if (!report) continue;
    const bool is_bad = std::any_of(report->images.begin(), report->images.end(),
                                    [](const ImageReport& image) { return image.bad_target; });
    if (is_bad) throw bad_target();
    if (!on_cycle(*report)) throw Error(ExitCode::interrupted, "stopped");
  }
}

at::Tensor decode(const Models& models, const Method& method, const Prompts& prompts,
                  const std::vector<DecodeRequest>& requests, const Grid& grid, const OnCycle& on_cycle) {
  RunShape shape;
  shape.grid = &grid;
  shape.images = static_cast<std::int64_t>(requests.size());
  shape.prompt_length = prompts.longest();
  shape.guided = prompts.rows.size(0) == 2 * shape.images;
  shape.varying = shape.guided && is_varying(models.target->manifest().schedule, requests);
  bool started = false;
  const auto all = [&](std::int64_t) {
    return std::exchange(started, true) ? PendingImages{} : PendingImages{prompts, requests};
  };
  at::Tensor codes = at::empty({shape.images, grid.tokens()}, at::kLong);
  for (std::int64_t i = 0; i < shape.images; ++i) {
    const std::vector<std::int32_t>& kept = requests[static_cast<std::size_t>(i)].kept;
    std::copy(kept.begin(), kept.end(), codes[i].mutable_data_ptr<std::int64_t>());
  }
  decode(models, method, shape, all, [&](const Report& report) {
    for (const ImageReport& image : report.images) {
      auto* raster = codes[image.image].mutable_data_ptr<std::int64_t>();
      if (image.first) raster[*image.first] = image.last_token;
      for (std::size_t i = 0; i < image.codes.size(); ++i) raster[image.positions[i]] = image.codes[i];
    }
    return !on_cycle || on_cycle(report);
  });
  return codes;
}

}  // namespace lamplighter
