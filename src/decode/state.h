#pragma once

#include <memory>
#include <vector>

#include "draft/method.h"
#include "lamplighter/options.h"

namespace lamplighter {

// How one image is sampled.
struct DecodeRequest {
  SamplingOptions sampling;
  std::uint64_t seed = 0;
  // Codes of the first positions, which are given. For a DecodeRun, some among them may be -1: these are
  // generated, too.
  std::vector<std::int32_t> kept = {};
};

// If any image is guided, all sequences are pairs.
bool is_guided(const std::vector<DecodeRequest>& requests);
// Whether the guidance scale of any image changes from token to token.
bool is_varying(const GuidanceSchedule& schedule, const std::vector<DecodeRequest>& requests);

// Everything that a cycle reads and writes.
struct DecodeState {
  RunState run;
  std::unique_ptr<DraftMethod> draft_method;
  TreeShape tree;           // the largest drafts of the method
  Topology last_token;      // a tree of the last token alone
  at::Tensor row_end_bits;  // int64 [1, E, W], see own_bits; undefined: image rows have no end token
};

// The state of images that begin together, one per request, before any pass. `slots`: cache slots for prompt
// and image, besides the slots of a draft.
DecodeState make_state(const Models& models, const Method& method, const RunShape& shape, std::int64_t slots,
                       const std::vector<DecodeRequest>& requests);
// The same with caches for whole images.
DecodeState make_state(const Models& models, const Method& method, const Prompts& prompts,
                       const std::vector<DecodeRequest>& requests, const Grid& grid);
// The state of a run whose batch slots are empty.
DecodeState empty_state(const Models& models, const Method& method, const RunShape& shape);

// A tree of the last token alone.
Draft last_token(const DecodeState& state);

// All tensors that belong to images, with the method's own.
std::vector<PerImage> per_image(DecodeState& state);

// A copy of `state` to come back to, and the way back, in place. The caches stay as they are: cycles write
// behind the committed slots only.
std::vector<at::Tensor> snapshot(DecodeState& state);
void restore(DecodeState& state, const std::vector<at::Tensor>& from);

}  // namespace lamplighter
