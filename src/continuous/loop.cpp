#include "continuous/loop.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "base/stopwatch.h"

namespace lamplighter {
namespace {

using Advance = void (*)(const ContinuousRun& run, const std::vector<ContinuousPicture*>& pictures);

Advance advance_of(const MethodOptions& method) {
  if (method.rule.empty()) return &advance_parallel;
  return method.rule == "released" ? &advance_released : &advance_speculative;
}

}  // namespace

Error damaged_target() {
  return {ExitCode::bundle,
          "target: got tokens that are NaN or infinite, expected finite numbers; its weights are damaged"};
}

void draw_continuous(const ContinuousRun& run, std::int64_t slots, const NextContinuous& next,
                     const AfterRound& after, Damage damage) {
  const c10::InferenceMode inference;
  const Advance advance = advance_of(run.method);
  ContinuousPictures pictures;
  std::int64_t begun = 0;
  while (true) {
    while (static_cast<std::int64_t>(pictures.size()) < slots) {
      const std::optional<ContinuousRequest> request = next();
      if (!request) break;
      pictures.push_back(
          std::make_unique<ContinuousPicture>(run.shape, begun++, *request, run.target->device()));
    }
    if (pictures.empty()) return;
    std::vector<ContinuousPicture*> active;
    for (const auto& picture : pictures) {
      active.push_back(picture.get());
      picture->statistics.batch = std::max(picture->statistics.batch, static_cast<int>(pictures.size()));
    }
    advance(run, active);
    const bool whole = std::none_of(active.begin(), active.end(),
                                    [](const ContinuousPicture* picture) { return picture->damaged; });
    if (damage == Damage::fails && !whole) throw damaged_target();
    if (!after(pictures)) throw Error(ExitCode::interrupted, "stopped");
    pictures.erase(std::remove_if(pictures.begin(), pictures.end(),
                                  [](const auto& picture) { return picture->is_complete(); }),
                   pictures.end());
  }
}

}  // namespace lamplighter
