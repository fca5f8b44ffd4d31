#pragma once

#include <memory>

#include "draft/method.h"

namespace lamplighter {

// ZipAR (He et al. 2024, arXiv 2412.04062), row-parallel decoding: the image rows are decoded in parallel,
// each some codes behind the one above it. Lossy: a code does not see the unfinished parts of the rows above.
// The plan of all passes, with the cache slots that each query sees, is made before the first pass, so there
// is no state to update. Needs no drafter, and image rows without an end token.
std::unique_ptr<DraftMethod> make_zipar(const Method& method, const Models& models);

}  // namespace lamplighter
