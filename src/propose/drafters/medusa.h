#pragma once

#include <memory>

#include "propose/proposer.h"

namespace lamplighter {

// Heads on the target's last hidden state, one for each depth (Medusa, Cai et al. 2024, section 2.1): no pass
// of a drafter, no cache.
std::unique_ptr<Proposer> make_medusa(const Method& method, const Models& models);

}  // namespace lamplighter
