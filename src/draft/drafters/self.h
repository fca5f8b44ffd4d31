#pragma once

#include <memory>

#include "draft/draft_method.h"

namespace lamplighter {

// Self-speculation: the target drafts with its first layers, and the verifying pass continues from their
// hidden states (Elhoushi et al. 2024, LayerSkip, section 4.3). It needs no weights and no cache of its own.
// With a window the layers attend to the prompt and the newest positions alone (Chen et al. 2025, MagicDec,
// section 4); then the verifying pass runs all layers.
std::unique_ptr<DraftMethod> make_self(const Method& method, const Models& models);

}  // namespace lamplighter
