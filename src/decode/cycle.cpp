#include "decode/cycle.h"

#include <utility>

#include "decode/open_rows.h"
#include "decode/row_ends.h"

namespace lamplighter {

void run_cycle(const Models& models, const Method& method, DecodeState& state, const OnStage& done,
               const Script& script) {
  const auto timed = [&](double StageTimes::*stage, auto work) {
    auto result = work();
    if (done) done(stage);
    return result;
  };
  Draft tree = timed(&StageTimes::draft, [&] { return draft(state); });
  const Scores scores = timed(&StageTimes::score, [&] { return score(models, state, tree); });
  Judged judged = timed(&StageTimes::judge, [&] { return judge(models, method, state, tree, scores); });
  if (script) script(tree, judged);
  commit(state, tree, scores, judged);
  if (done) done(&StageTimes::commit);
}

Draft draft(DecodeState& state) {
  Draft tree = state.proposer->propose(state);
  stop_at_row_ends(state, tree);
  return tree;
}

Scores score(const Models& models, DecodeState& state, const Draft& tree) {
  const Target& target = *models.target;
  const PassRows pass = pass_rows(state, tree);
  const auto [ids, positions] =
      ops::tree_rows(pass.codes, pass.depths, state.position, pass.first_id, state.last_position);
  const at::Tensor& lengths = tree.lengths.defined() ? tree.lengths : state.lengths;
  if (tree.begun.rows.defined())
    return {target
                .forward_layers(tree.begun.layers, target.layers(), tree.begun.rows, positions, pass.mask,
                                lengths, state.cache)
                .hidden,
            {},
            {}};
  Target::Output output = models.run(target.embed(ids), positions, pass.mask, lengths, state.cache);
  if (pass.deciding.defined())
    output.hidden = rows_at(output.hidden, per_sequence(pass.deciding, state.guided));
  return {std::move(output.hidden), std::move(output.features), pass.deciding};
}

Judged judge(const Models& models, const Method& method, const DecodeState& state, const Draft& tree,
             const Scores& scores) {
  ops::Distributions target =
      distributions(state, state.target_filter, models.target->logits(scores.hidden), tree.depths);
  if (tree.windows.rows > 0) return judge_windows(state, tree, target, method.judge);
  if (tree.open.defined()) return draw_open_rows(state, tree, std::move(target));
  ops::ScoredTree scored;
  scored.target = std::move(target);
  scored.draft = tree.distributions;
  scored.tokens = tree.tokens;
  scored.parents = tree.parents;
  scored.draft_rows = tree.draft_rows;
  scored.uniforms = ops::uniforms(state.seeds, state.steps, ops::Purpose::accept, tree.tokens.size(1));
  scored.temperature = state.temperature;
  scored.depth = tree.tokens.size(1) > 1 ? state.tree.depth : 0;
  return {ops::judge_tree(scored, method.judge), scored.target};
}

void commit(DecodeState& state, const Draft& tree, const Scores& scores, const Judged& judged) {
  const KeptRows kept = judged.kept.rows.defined() ? judged.kept : kept_rows(judged, scores.deciding);
  state.proposer->learn(tree, scores, judged, kept, state);
  const at::Tensor begin = tree.lengths.defined() ? tree.lengths[1] : state.lengths;
  if (kept.rows.size(1) > 1) ops::compact_cache(state.cache, begin, kept.rows, kept.count);
  if (!judged.chain.defined()) {
    ops::commit_tokens({tree.tokens, tree.depths, judged.path, judged.count, judged.token, judged.status,
                        kept.rows, kept.count},
                       state);
    return;
  }
  ops::commit_tokens({judged.chain, chain_depths(judged.chain), judged.path, judged.count, judged.token,
                      judged.status, kept.rows, judged.count},
                     state);
}

}  // namespace lamplighter
