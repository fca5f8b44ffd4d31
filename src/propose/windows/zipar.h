#pragma once

#include <memory>

#include "propose/method.h"

namespace lamplighter {

// ZipAR (He et al. 2024, arXiv 2412.04062): the rows of a picture are drawn side by side, each some codes
// behind the one above it. Relaxed: a code does not see what is still lacking of the rows above. What a pass
// runs, at which places, and which rows of the cache it sees is known before the first pass, so there is
// nothing to learn. Needs no drafter, and rows that end with no token. Options: Method::rows.
std::unique_ptr<Proposer> make_zipar(const Method& method, const Models& models);

}  // namespace lamplighter
