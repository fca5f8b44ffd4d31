#pragma once

#include "draft/verify.h"

// Verification of row-parallel decoding.
namespace lamplighter {

// Without drafts, samples the token that follows every row's newest code; these are committed as a chain,
// from the image's top down. With windows, verifies every chain by the rule, as a tree of its own, and
// commits what they give as one chain, row by row. The first token of an image is a tree.
Verified verify_rows(const RunState& run, const Draft& draft, const Scores& scores, ops::Distributions target,
                     const ops::VerifyOptions& rule);

}  // namespace lamplighter
