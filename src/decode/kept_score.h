#pragma once

#include <vector>

#include "decode/state.h"

namespace lamplighter {

// The logarithm of the probability of the given tokens of an image that come after the first one that is not:
// the sum over them of the target's log probability given all tokens in front. The target is guided as in
// sampling, at temperature 1 and without top-k and top-p, which would make tokens impossible that another
// image brings. `request` says what is given, `codes` is the whole image, `prompts` are its own.
double kept_log_probability(const Models& models, const Prompts& prompts, const DecodeRequest& request,
                            const std::vector<std::int32_t>& codes, const Grid& grid);

}  // namespace lamplighter
