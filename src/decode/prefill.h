#pragma once

#include <vector>

#include "decode/state.h"

namespace lamplighter {

// Images that begin together.
struct PendingImages {
  Prompts prompts;
  std::vector<DecodeRequest> requests;
};

// Positions int64 [S, T] of the rows of the prompts, T = longest(); padding has the last row's. Kept tokens
// have those that they have in the image.
at::Tensor prompt_positions(const Target& target, const Prompts& prompts);

// Runs the prompts through the target and shows them to the method. Returns the scores of the last prompt
// rows, which decide the first tokens.
Scores prefill(const Models& models, const Prompts& prompts, DecodeState& state);

// The state of images whose prompts and kept tokens have run and whose first tokens behind them are
// committed, with caches of its own.
DecodeState begin(const Models& models, const Method& method, const PendingImages& images,
                  const RunShape& shape);

}  // namespace lamplighter
