#include "continuous/loop.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

namespace lamplighter {
namespace {

auto method_of(const MethodOptions& method) {
  if (method.rule.empty()) return &advance_parallel;
  return method.rule == "official" ? &advance_official : &advance_speculative;
}

}  // namespace

Error damaged_target() {
  return {ExitCode::bundle,
          "target: got tokens that are NaN or infinite, expected finite numbers; its weights are damaged"};
}

void advance(const ContinuousRun& run, const std::vector<ContinuousImage*>& images) {
  const c10::InferenceMode inference;
  for (ContinuousImage* image : images)
    image->statistics.batch = std::max(image->statistics.batch, static_cast<int>(images.size()));
  method_of(run.method)(run, images);
}

}  // namespace lamplighter
