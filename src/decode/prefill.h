#pragma once

#include <functional>

#include "decode/state.h"

namespace lamplighter {

// Images that wait to be drawn.
struct PendingImages {
  Prompts prompts;
  std::vector<DecodeRequest> requests;
  std::vector<std::int64_t> dropped = {};  // numbers of images in work that nobody wants any more
  bool open = false;                       // others may come later
};

// As many as are asked for, in the order of their numbers 0, 1, ..., or fewer: then none waits any more,
// unless they are open: then it is asked before every cycle, for none where no slot is free, and again when
// images were dropped and none came.
using NextImages = std::function<PendingImages(std::int64_t most)>;

// Positions int64 [S, T] of the rows of the prompts, T = longest(); padding has the last row's.
at::Tensor prompt_positions(const Target& target, const Prompts& prompts);

// Runs the prompts through the target and shows them to the proposer. Their last rows are the roots of the
// first trees: what follows them.
Scores prefill(const Models& models, const Prompts& prompts, DecodeState& state);

// Images of a run with their prompts and first codes, in caches of their own.
DecodeState begin(const Models& models, const Method& method, const PendingImages& images,
                  const RunShape& shape);

}  // namespace lamplighter
