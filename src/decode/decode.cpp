#include "decode/decode.h"

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <utility>

#include "decode/cycle.h"
#include "decode/replay.h"
#include "decode/report_reader.h"
#include "decode/slots.h"

namespace lamplighter {
namespace {

bool has_bad_target(const Report& report) {
  return std::any_of(report.images.begin(), report.images.end(),
                     [](const ImageReport& image) { return image.bad_target; });
}

}  // namespace

Error bad_target() {
  return {ExitCode::bundle,
          "target: got logits that are NaN or infinite, expected finite numbers; the weights are damaged "
          "or the dtype is too narrow for them"};
}

void decode(const Models& models, const Method& method, const RunShape& shape, const NextImages& next,
            const OnCycle& on_cycle, BadTarget bad) {
  const c10::InferenceMode inference;
  const c10::Device device = models.target->placement().device;
  const auto make = [&](std::int64_t count) {
    RunShape own = shape;
    own.images = count;
    return empty_state(models, method, own);
  };
  DecodeState state = make(shape.images);
  Replay replay(device, shape.graph && state.proposer->replayable(), shape.note);
  Slots slots(shape.images);
  ReportReader reports(state);
  while (true) {
    const PendingImages images = slots.take(next, state);
    StageClock clock(device, !replay.captures());
    if (!images.requests.empty()) {
      slots.place(begin(models, method, images, shape), state, make);
      clock.lap(&StageTimes::prefill);
    }
    if (slots.idle()) return;
    slots.shrink(state);
    replay.run([&] { run_cycle(models, method, state, [&](auto stage) { clock.lap(stage); }); });
    const std::optional<Report> report = reports.read(state, std::move(clock));
    if (!report) continue;
    if (bad == BadTarget::fails && has_bad_target(*report)) throw bad_target();
    if (!on_cycle(*report)) throw Error(ExitCode::interrupted, "stopped");
    slots.release(*report, state.total);
  }
}

at::Tensor decode(const Models& models, const Method& method, const Prompts& prompts,
                  const std::vector<DecodeRequest>& requests, const Grid& grid, const OnCycle& on_cycle) {
  RunShape shape;
  shape.grid = &grid;
  shape.images = static_cast<std::int64_t>(requests.size());
  shape.prompt_rows = prompts.longest();
  shape.guided = prompts.rows.size(0) == 2 * shape.images;
  shape.varying = shape.guided && is_varying(models.target->manifest().schedule, requests);
  bool begun = false;
  const auto all = [&](std::int64_t) {
    return std::exchange(begun, true) ? PendingImages{} : PendingImages{prompts, requests};
  };
  at::Tensor codes = at::empty({shape.images, grid.tokens()}, at::kLong);
  decode(models, method, shape, all, [&](const Report& report) {
    for (const ImageReport& image : report.images) {
      auto* picture = codes[image.image].mutable_data_ptr<std::int64_t>();
      if (image.is_first()) picture[0] = image.root;
      for (std::size_t i = 0; i < image.codes.size(); ++i) picture[image.places[i]] = image.codes[i];
    }
    return !on_cycle || on_cycle(report);
  });
  return codes;
}

}  // namespace lamplighter
