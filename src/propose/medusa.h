#pragma once

#include <memory>

#include "propose/proposer.h"

namespace lamplighter {

// Heads on the target's last hidden state, one for each depth (Medusa, Cai et al. 2024, section 2.1): no pass
// of a drafter, no cache. The candidates of a depth are drawn without replacement from its head's law,
// whatever stands before them, and are the same under every node: exact rules keep the target's law (Miao et
// al. 2024, section 4.3). With children top they are the head's most probable tokens, as published.
std::unique_ptr<Proposer> make_medusa(const Method& method, const Models& models);

}  // namespace lamplighter
