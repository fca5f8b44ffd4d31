#pragma once

#include <functional>

#include "decode/report.h"
#include "decode/state.h"

// A cycle: draft a tree, score it in one target pass, judge it by the rule, commit what is kept.
namespace lamplighter {

// Called when a stage of a cycle is done.
using OnStage = std::function<void(double StageTimes::*stage)>;
// May put another verdict in the place of the rule's, as measurements do.
using Script = std::function<void(Draft& draft, Judged& judged)>;

void run_cycle(const Models& models, const Method& method, DecodeState& state, const OnStage& done = {},
               const Script& script = {});

// Its stages.
// A tree below the root, which stops at the ends of rows.
Draft draft(DecodeState& state);
// Runs a tree through the target in one pass.
Scores score(const Models& models, DecodeState& state, const Draft& tree);
// Walks the tree under the rule and draws one token more from the guided, filtered distribution; or draws one
// behind every open row of the draft.
Judged judge(const Models& models, const Method& method, const DecodeState& state, const Draft& tree,
             const Scores& scores);
// Shows the proposer what is kept, keeps its rows of the target's cache, appends the tokens, and leaves in
// state.report what the host wants to know of the cycle.
void commit(DecodeState& state, const Draft& tree, const Scores& scores, const Judged& judged);

}  // namespace lamplighter
