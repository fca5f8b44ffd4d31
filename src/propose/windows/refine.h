#pragma once

#include <memory>

#include "propose/proposer.h"

namespace lamplighter {

// A window of drafts (jacobi.h) that a small network draws anew in every cycle. The pass before left rows of
// the target behind the newest token, which saw a stale draft where that token stands now; the network is
// told both, corrects what every row says of the next place, and goes on alone where no row is left. A draft
// is drawn from the corrected law and judged by it, so any rule holds whatever the network says; or, with
// Method::window.keep, the draft that stood there stays where that law lets it, by a maximal coupling (SCD),
// which rules that judge whole paths forbid. Trees are chains. Pairs are guided before the network reads
// them.
std::unique_ptr<Proposer> make_refine(const Method& method, const Models& models);

}  // namespace lamplighter
