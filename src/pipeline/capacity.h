#pragma once

#include <cstddef>
#include <vector>

#include "device/placement.h"
#include "pipeline/resolved_request.h"

namespace lamplighter {

// Throws Error(ExitCode::memory) when `slots` images of a group cannot be held; needs no weights.
void require_images(const Manifest& manifest, const Placement& placement,
                    const std::vector<ResolvedRequest>& requests, const RequestGroup& group,
                    std::size_t slots);

}  // namespace lamplighter
