#pragma once

#include <cstddef>
#include <vector>

#include "bundle/placement.h"
#include "pipeline/requests/request.h"

namespace lamplighter {

// Throws Error(ExitCode::memory) when `slots` pictures of a group cannot be held, before weights are read.
// method: that of the group, resolved.
void require_pictures(const Manifest& manifest, const MethodOptions& method, const Placement& placement,
                      const std::vector<ResolvedRequest>& requests, const RequestGroup& group,
                      std::size_t slots);

}  // namespace lamplighter
