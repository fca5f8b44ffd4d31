#pragma once

#include <functional>

#include "decode/report.h"
#include "decode/state.h"

// A cycle: draft, score the draft in one target pass, verify it, commit what is accepted.
namespace lamplighter {

// Called when a stage of a cycle is done.
using OnStage = std::function<void(double StageTimes::*stage)>;
// Sees the result of verification before the commit, and may replace it, as measurements do.
using Script = std::function<void(Draft& draft, const Scores& scores, Verified& verified)>;

void run_cycle(const Models& models, const Method& method, DecodeState& state, const OnStage& done = {},
               const Script& script = {});

// Its stages. Where nothing is drafted, sample_and_commit() does what the last two do, and finish_cycle()
// where the method does so in one operator.
// Drafts behind the last tokens; drafts stop at the ends of image rows.
Draft draft(DecodeState& state);
// Runs a draft through the target in one pass.
Scores score(const Models& models, DecodeState& state, const Draft& draft);
// Verifies a draft against the guided, filtered distributions of the target.
Verified verify(const Models& models, const Method& method, const DecodeState& state, const Draft& draft,
                const Scores& scores);
// Updates the method, keeps the accepted slots of the target's cache, appends the tokens, and leaves the
// cycle's report in Counters::report.
void commit(DecodeState& state, const Draft& draft, const Scores& scores, const Verified& verified);
// Samples the token behind the root of a draft without other nodes and appends it.
void sample_and_commit(const Models& models, DecodeState& state, const Draft& draft, const Scores& scores);
// See DraftMethod::finish_cycle.
void finish_cycle(const Models& models, DecodeState& state, const Draft& draft, const Scores& scores);

}  // namespace lamplighter
