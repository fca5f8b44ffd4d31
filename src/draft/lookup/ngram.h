#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "draft/method.h"

namespace lamplighter {

// Drafts a chain of codes from the image itself: prompt lookup over the codes so far, and where that finds
// nothing, the codes that begin one row up, in the next code's column. The drafts are deterministic: the rule
// accepts them with the target's probability.
std::unique_ptr<DraftMethod> make_ngram(const Method& method, const Models& models);

// Prompt lookup (Saxena 2023): what followed the last n tokens where they stood before, for the longest n of
// `longest` .. 1 that is found, at its earliest occurrence. Only whole continuations count, `count` tokens
// long, that begin before the last n tokens. Empty: nothing was found.
std::vector<std::int64_t> prompt_lookup(const std::int64_t* tokens, std::int64_t length, std::int64_t longest,
                                        std::int64_t count);

}  // namespace lamplighter
