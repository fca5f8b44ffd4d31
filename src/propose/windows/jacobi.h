#pragma once

#include <memory>

#include "propose/method.h"

namespace lamplighter {

// Speculative Jacobi decoding (Teng et al. 2024, arXiv 2410.01699): a window of drafts behind the last token
// goes through the target in every cycle, and each of its rows says anew what stands at the next place. What
// is not committed stays in the window as a draft that its own row was drawn from, so the rule judges it
// exactly. Needs no drafter. The method's tree is the window, a chain, or a fan, whose first places have
// several candidates under every node (SJD-PAC, github.com/KangJialiang/SJD-PAC, its laws corrected): a
// place keeps one row, and of its candidates the first alone outlives the cycle. The rule official_pac does
// what SJD-PAC's program does instead: all candidates outlive the cycle, drawn from what the tests leave.
// With WindowOptions::front an EAGLE drafter fills the first places anew in every cycle; a slot's draft comes
// from the row beside it, whoever filled both. The options are in Method::window.
std::unique_ptr<Proposer> make_jacobi(const Method& method, const Models& models);

}  // namespace lamplighter
