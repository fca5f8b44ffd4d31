#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "propose/method.h"

namespace lamplighter {

// A chain of codes that the picture itself suggests: prompt lookup over the codes drawn so far, and where
// that finds nothing, the codes that begin one row up, in the next code's column. They are certain guesses:
// the rule takes them with the target's probability.
std::unique_ptr<Proposer> make_ngram(const Method& method, const Models& models);

// Prompt lookup (Saxena 2023): what followed the last n tokens where they stood before, for the longest n of
// `longest` .. 1 that is found, at its earliest place. Only whole continuations count, `count` tokens long,
// that begin before the last n tokens. Empty: nothing was found.
std::vector<std::int64_t> prompt_lookup(const std::int64_t* tokens, std::int64_t length, std::int64_t longest,
                                        std::int64_t count);

}  // namespace lamplighter
