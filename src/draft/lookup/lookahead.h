#pragma once

#include <memory>

#include "draft/method.h"

namespace lamplighter {

// Lookahead decoding (Fu et al. 2024, arXiv 2402.02057): a window of guesses that every target pass iterates
// on as Jacobi did, and a pool of the runs of tokens that came out of it and of the image. What the pool
// holds for the last token is drafted as a trie, the window beside it as a tree of its own: level 0 is a
// chain below the root, and on each of its nodes hangs the column of the later levels. All drafts are
// deterministic: the rule accepts them with the target's probability. Method::tail is their length.
std::unique_ptr<DraftMethod> make_lookahead(const Method& method, const Models& models);

// The longest tail that leaves room for the window and the guesses in a tree.
std::int64_t longest_lookahead();

}  // namespace lamplighter
