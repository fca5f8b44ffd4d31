#pragma once

#include <memory>

#include "propose/proposer.h"

namespace lamplighter {

// Self-speculation: the target drafts with its first layers, whose rows the verifying pass takes up instead
// of computing them again (Elhoushi et al. 2024, LayerSkip, section 4.3). No weights, no cache of its own. Or
// with layers that see the prompt and the newest rows alone (Chen et al. 2025, MagicDec, section 4): such
// rows are drafts' alone, and the pass runs all layers.
std::unique_ptr<Proposer> make_self(const Method& method, const Models& models);

}  // namespace lamplighter
