#pragma once

#include <vector>

#include "decode/state.h"

// Images whose first tokens are given. The target reads them behind the prompt, in the same pass: to a draft
// method they are the end of the prompt.
namespace lamplighter {

// Prompts with the kept tokens of their images, one request per image, behind them, and a row end behind the
// last code of every row.
Prompts with_kept(const Models& models, const Prompts& prompts, const std::vector<DecodeRequest>& requests,
                  const Grid& grid);

// int64 [S] on the target's device: how many of the valid rows are kept tokens and row ends.
at::Tensor kept_counts(const Prompts& prompts);

}  // namespace lamplighter
