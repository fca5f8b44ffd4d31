#pragma once

#include <memory>
#include <vector>

#include "lamplighter/options.h"
#include "propose/method.h"

namespace lamplighter {

// What to draw: one entry per image.
struct DecodeRequest {
  SamplingOptions sampling;
  std::uint64_t seed = 0;
};

// Images that are guided at all run as pairs.
bool is_guided(const std::vector<DecodeRequest>& requests);
// Whether tokens of any of them differ in the scale of guidance.
bool is_varying(const GuidanceSchedule& schedule, const std::vector<DecodeRequest>& requests);

// Everything that a cycle reads and writes.
struct DecodeState : RunState {
  at::Tensor row_end_bits;  // int64 [1, E, W], see own_bits; undefined: rows have no ends
  Topology root_alone;      // of trees that are their root
  TreeShape tree;           // of the trees that it gets
  std::unique_ptr<Proposer> proposer;
};

// State for images that begin together, one per request, before any row has been run. `rows`: rows of prompt
// and picture that the caches have to hold besides a tree.
DecodeState make_state(const Models& models, const Method& method, const RunShape& shape, std::int64_t rows,
                       const std::vector<DecodeRequest>& requests);
// The same for images that begin together and are drawn to their end.
DecodeState make_state(const Models& models, const Method& method, const Prompts& prompts,
                       const std::vector<DecodeRequest>& requests, const Grid& grid);
// That of a run whose slots are still empty.
DecodeState empty_state(const Models& models, const Method& method, const RunShape& shape);

// The tree of the root alone.
Draft root_alone(const DecodeState& state);

// All that belongs to images, the proposer's state included.
std::vector<PerImage> per_image(DecodeState& state);

// What `state` is, to come back to, and the way back, in place. The caches stay as they are: cycles write
// behind the committed rows alone.
std::vector<at::Tensor> snapshot(DecodeState& state);
void restore(DecodeState& state, const std::vector<at::Tensor>& from);

}  // namespace lamplighter
