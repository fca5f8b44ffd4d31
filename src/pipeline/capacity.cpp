#include "pipeline/capacity.h"

#include <algorithm>
#include <string>

#include "bundle/machine.h"
#include "bundle/modules/continuous.h"
#include "propose/registry.h"

namespace lamplighter {
namespace {

// What a picture holds while it is drawn, at least and without guidance: the rows of its codes in the caches,
// or the contexts of a pass.
std::int64_t picture_bytes(const Manifest& manifest, const MethodOptions& method, const Placement& placement,
                           const Grid& grid) {
  if (manifest.is_continuous()) {
    const bool verifies = !method.rule.empty() && method.rule != "released";
    return context_bytes(manifest, grid) * (verifies ? std::min(*method.gamma, grid.tokens()) + 1 : 1);
  }
  return grid.length() *
         (row_bytes(manifest.cache, placement) +
          cache_numbers(method, manifest) * static_cast<std::int64_t>(c10::elementSize(placement.dtype)));
}

}  // namespace

void require_pictures(const Manifest& manifest, const MethodOptions& method, const Placement& placement,
                      const std::vector<ResolvedRequest>& requests, const RequestGroup& group,
                      std::size_t slots) {
  std::int64_t bytes = picture_bytes(manifest, method, placement, *requests[group.begin].grid);
  for (std::size_t i = group.begin; i < group.end; ++i) {
    if (requests[i].sampling.cfg_scale > 1) {
      bytes *= 2;  // pairs
      break;
    }
  }
  slots = std::min(slots, group.end - group.begin);
  require_memory(placement.device, bytes, static_cast<std::int64_t>(slots),
                 (manifest.is_continuous() ? "the passes of " : "the caches of ") + std::to_string(slots) +
                     (slots == 1 ? " picture" : " pictures"));
}

}  // namespace lamplighter
