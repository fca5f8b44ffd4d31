#pragma once

#include <memory>

#include "draft/draft_method.h"

namespace lamplighter {

// Heads on the target's last hidden state, one for each depth (Medusa, Cai et al. 2024, section 2.1). They
// need no cache.
std::unique_ptr<DraftMethod> make_medusa(const Method& method, const Models& models);

}  // namespace lamplighter
