#pragma once

#include <memory>

#include "draft/draft_method.h"

namespace lamplighter {

// A window of drafts (jacobi.h) that a small network samples anew in every cycle. The pass before left rows
// of the target behind the newest token, which saw a stale draft where that token stands now. The network
// reads both, corrects each row's distribution of the next position, and continues alone where no row is
// left. A draft is sampled from the corrected distribution and verified against it, so every rule holds
// whatever the network says. With Method::window.keep the draft of the cycle before stays where the corrected
// distribution allows it, by a maximal coupling (SCD), which rules that verify whole paths forbid. Trees are
// chains. Pairs are guided before the network reads them.
std::unique_ptr<DraftMethod> make_refine(const Method& method, const Models& models);

}  // namespace lamplighter
