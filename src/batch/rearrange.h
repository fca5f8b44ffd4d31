#pragma once

#include <cstddef>
#include <string>

#include "batch/arrange.h"
#include "batch/plan.h"

namespace lamplighter {

// How the images in a run's folder fit a plan. With `verify`, files count with the right checksum only.
Arrangement arrange_images(const std::string& folder, const Plan& plan, bool verify);

// Gives the images of a folder the names of an arrangement, replaces its manifests by one, and moves images
// that the plan has no use for, and the folders of layouts, to replaced/CONFIGURATION. Links and
// the new manifest come first, so that a crash loses no image: finish_moves completes the rest. Throws
// Error(ExitCode::output).
void rearrange(const std::string& folder, const Arrangement& arrangement, std::size_t configuration);

// Completes the moves of a process that ended after it had published their records, and drops others.
void finish_moves(const std::string& folder);

}  // namespace lamplighter
