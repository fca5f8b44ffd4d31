#include "pipeline/capacity.h"

#include <algorithm>
#include <string>

#include "base/format.h"
#include "bundle/modules/continuous.h"
#include "device/machine.h"
#include "draft/registry.h"

namespace lamplighter {
namespace {

// The least that an image takes while it is generated without guidance: its slots of the caches, or the
// contexts of a pass.
std::int64_t image_bytes(const Manifest& manifest, const MethodOptions& method, const Placement& placement,
                         const Grid& grid) {
  if (manifest.is_continuous()) {
    const bool verifies = !method.rule.empty() && method.rule != "official";
    return context_bytes(manifest, grid) * (verifies ? std::min(*method.gamma, grid.tokens()) + 1 : 1);
  }
  return grid.length() *
         (row_bytes(manifest.cache, placement) +
          cache_numbers(method, manifest) * static_cast<std::int64_t>(c10::elementSize(placement.dtype)));
}

}  // namespace

void require_images(const Manifest& manifest, const Placement& placement,
                    const std::vector<ResolvedRequest>& requests, const RequestGroup& group,
                    std::size_t slots) {
  const ResolvedRequest& first = requests[group.begin];
  std::int64_t bytes = image_bytes(manifest, first.method->options, placement, *first.grid);
  const auto begin = requests.begin() + static_cast<std::ptrdiff_t>(group.begin);
  const auto end = requests.begin() + static_cast<std::ptrdiff_t>(group.end);
  if (std::any_of(begin, end, [](const ResolvedRequest& request) { return request.is_guided(); }))
    bytes *= 2;  // pairs
  slots = std::min(slots, count_candidates(requests, group));
  require_memory(placement.device, bytes, static_cast<std::int64_t>(slots),
                 (manifest.is_continuous() ? "the passes of " : "the caches of ") + counted(slots, "image"));
}

}  // namespace lamplighter
