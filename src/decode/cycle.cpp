#include "decode/cycle.h"

#include <tuple>
#include <utility>

#include "decode/row_ends.h"

namespace lamplighter {
namespace {

// The first of the cache slots that a draft's rows take.
at::Tensor first_slots(const RunState& run, const Draft& draft) {
  return draft.lengths ? draft.lengths->select(0, 1) : run.counters.lengths;
}

// Ids and positions of a pass. The commit before has left the ones of the root alone.
std::tuple<at::Tensor, at::Tensor> rows_of(const DecodeState& state, const Draft& draft,
                                           const PassRows& pass) {
  const ops::Counters& counters = state.run.counters;
  if (draft.ids.defined() && state.run.columns == 0) return {draft.ids, draft.positions};
  if (!state.draft_method->drafts() && pass.codes.size(1) == 1)
    return {counters.root_ids, counters.root_positions};
  return ops::tree_rows(pass.codes, pass.depths, counters.position, pass.first_id, counters.last_position);
}

}  // namespace

void run_cycle(const Models& models, const Method& method, DecodeState& state, const OnStage& done,
               const Script& script) {
  const auto timed = [&](double StageTimes::*stage, auto work) {
    auto result = work();
    if (done) done(stage);
    return result;
  };
  Draft drafted = timed(&StageTimes::draft, [&] { return draft(state); });
  const Scores scores = timed(&StageTimes::score, [&] { return score(models, state, drafted); });
  if (!state.draft_method->drafts() && !script) {
    sample_and_commit(models, state, drafted, scores);  // counts as verification
    if (done) done(&StageTimes::verify);
    if (done) done(&StageTimes::commit);
    return;
  }
  if (state.draft_method->finishes_cycles()) {
    TORCH_CHECK(!script, "a script cannot see cycles that one operator finishes");
    finish_cycle(models, state, drafted, scores);  // counts as verification
    if (done) done(&StageTimes::verify);
    if (done) done(&StageTimes::commit);
    return;
  }
  Verified verified =
      timed(&StageTimes::verify, [&] { return verify(models, method, state, drafted, scores); });
  if (script) script(drafted, scores, verified);
  commit(state, drafted, scores, verified);
  if (done) done(&StageTimes::commit);
}

Draft draft(DecodeState& state) {
  Draft drafted = state.draft_method->draft(state.run);
  stop_at_row_ends(state.run, drafted);
  return drafted;
}

Scores score(const Models& models, DecodeState& state, const Draft& draft) {
  const Target& target = *models.target;
  RunState& run = state.run;
  const PassRows pass = pass_rows(state, draft);
  const auto [ids, positions] = rows_of(state, draft, pass);
  const at::Tensor& lengths = draft.lengths ? *draft.lengths : run.counters.lengths;
  if (const auto& partial = draft.partial)
    return {target
                .forward_layers(partial->first_layers, target.layers(), partial->residual, positions,
                                pass.mask, lengths, run.cache)
                .hidden,
            {}};
  Target::Output output = models.run(target.embed(ids), positions, pass.mask, lengths, run.cache);
  if (pass.logits_row) output.hidden = rows_at(output.hidden, per_sequence(*pass.logits_row, run.guided));
  return {std::move(output.hidden), std::move(output.features), pass.logits_row};
}

Verified verify(const Models& models, const Method& method, const DecodeState& state, const Draft& draft,
                const Scores& scores) {
  const at::Tensor logits = models.target->logits(scores.hidden);
  return state.draft_method->verify(
      state.run, draft, scores, distributions(state.run, state.run.target_filter, logits, draft.nodes.depths),
      method.verify);
}

void sample_and_commit(const Models& models, DecodeState& state, const Draft& draft, const Scores& scores) {
  RunState& run = state.run;
  ops::ArStep step;
  step.logits = models.target->logits(scores.hidden);
  step.filtering = filtering(run, run.target_filter, draft.nodes.depths, 1);
  step.seeds = run.seeds;
  step.temperature = run.temperature;
  if (scores.logits_row) step.logits_rows = *scores.logits_row;
  ops::ar_step(step, run.counters);
}

void commit(DecodeState& state, const Draft& draft, const Scores& scores, const Verified& verified) {
  state.draft_method->update(draft, scores, verified, state.run);
  const KeptRows& kept = verified.kept;
  // The accepted nodes of a chain lie where they stay, unless a row end was scored behind the nodes.
  const bool in_place = state.tree.chain && state.run.columns == 0;
  if (kept.rows.size(1) > 1 && !in_place)
    ops::compact_cache(state.run.cache, first_slots(state.run, draft), kept.rows, kept.count);
  ops::commit_tokens(committed_tree(verified), state.run.counters);
  if (draft.tokens.size(1) == 1) state.draft_method->begun(state.run);
}

void finish_cycle(const Models& models, DecodeState& state, const Draft& draft, const Scores& scores) {
  RunState& run = state.run;
  at::Tensor first;  // the accepted nodes of a chain lie where they stay, but for row ends
  if (run.columns > 0) first = first_slots(run, draft).clone();
  const ops::WindowRows kept =
      state.draft_method->finish_cycle(models.target->logits(scores.hidden), draft, scores, run);
  if (first.defined()) ops::compact_cache(run.cache, first, kept.rows, kept.count);
}

}  // namespace lamplighter
