#pragma once

#include <array>

#include "lamplighter/bundle.h"

namespace lamplighter {

// Kinds of networks that draft, by the interface of their archive. A method names the kind that it calls.
enum class DraftKind { eagle, eagle_3, model, medusa, mlp, flash, refine, continuous, other };

// What a network reads from the target.
enum class DraftInput { tokens, hidden, features };

// Fields of a drafter in the manifest beside file, dtype and kind.
enum DraftField : unsigned {
  kDraftCache = 1,     // layers, kv_heads, head_dim, max_length; prompt_id and padding are optional
  kDraftHeads = 2,     // heads
  kFeatureLayers = 4,  // feature_layers
  kDraftQueries = 8,   // queries and window, both optional
  kDraftTexts = 16,    // it may draft texts about images
};

using DraftCalls = std::array<const char*, 3>;
inline constexpr DraftCalls kTargetCalls{}, kLayerCalls{"embed", "forward", "logits"};

struct DraftKindEntry {
  DraftKind kind;
  const char* name;      // in manifests
  const char* exporter;  // command of lamplighter-export
  DraftInput reads;
  unsigned fields;
  DraftCalls methods;  // of the archive; none: the methods of a target

  constexpr bool is_target() const { return methods[0] == nullptr; }
  constexpr bool has(DraftField field) const { return (fields & field) != 0; }
};

// A new kind is an enumerator and a row.
inline constexpr DraftKindEntry kDraftKinds[] = {
    // A layer over the target's features.
    {DraftKind::eagle, "eagle", "drafter", DraftInput::features, kDraftCache | kDraftTexts, kLayerCalls},
    // The same over the inputs of some inner layers of the target, side by side.
    {DraftKind::eagle_3, "eagle-3", "eagle-3", DraftInput::features, kDraftCache | kFeatureLayers,
     kLayerCalls},
    // A whole target that takes the same prompts and codes.
    {DraftKind::model, "model", "draft-model", DraftInput::tokens, kDraftCache, kTargetCalls},
    // Heads on the target's hidden states, one for each of the next tokens.
    {DraftKind::medusa, "medusa", "medusa", DraftInput::hidden, kDraftHeads, {"heads"}},
    // A recurrent network that starts from the target's hidden state.
    {DraftKind::mlp, "mlp", "mlp", DraftInput::hidden, kDraftHeads, {"step", "logits"}},
    // A layer over the target's features with heads for several tokens. With queries it compresses old
    // positions.
    {DraftKind::flash,
     "flash",
     "flash",
     DraftInput::features,
     kDraftCache | kDraftHeads | kDraftQueries | kDraftTexts,
     {"embed", "forward", "heads"}},
    // Corrects the target's logits behind a window of stale drafts.
    {DraftKind::refine, "refine", "refine", DraftInput::hidden, 0, {"read", "step", "logits"}},
    // A whole target of continuous tokens.
    {DraftKind::continuous, "continuous", "mar --drafter", DraftInput::tokens, 0, kTargetCalls},
    // A kind that no method of this version calls.
    {DraftKind::other, "", "", DraftInput::features, kDraftCache, kLayerCalls},
};

const DraftKindEntry& draft_kind(DraftKind kind);
const DraftKindEntry& draft_kind(const DraftModelEntry& drafter);

}  // namespace lamplighter
