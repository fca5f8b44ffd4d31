#pragma once

#include "propose/method.h"

namespace lamplighter {

// A drafter whose one pass over the target's features gives those of several tokens ahead (FLASH, Wang et al.
// 2025, section 3.3), and with a head for it the candidates of every depth. Rows of the picture older than
// the drafter's window may be compressed to a few learned queries (section 3.2). `tree`: what grows below the
// root; that of the method, or a part of what is judged. It outlives the proposer.
std::unique_ptr<Proposer> make_flash_tree(const Method& method, const Models& models, const Tree& tree);
// For the method's own tree.
std::unique_ptr<Proposer> make_flash(const Method& method, const Models& models);

}  // namespace lamplighter
