#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gather.h>

#include "decode/row_ends.h"

namespace lamplighter {

at::Tensor per_sequence(const at::Tensor& per_image, bool guided) {
  return guided ? per_image.repeat_interleave(2, 0) : per_image;
}

at::Tensor rows_at(const at::Tensor& rows, const at::Tensor& index) {
  return rows.gather(1, index.unsqueeze(2).expand({-1, -1, rows.size(2)}));
}

Draft root_alone(const DecodeState& state) {
  const at::Tensor& parents = state.plan.parents;
  Draft tree;
  tree.tokens = state.root.unsqueeze(1);
  tree.parents = parents.narrow(1, 0, 1);
  tree.draft_rows = at::full_like(tree.parents, -1);
  tree.depths = state.plan.depths.narrow(1, 0, 1);
  tree.mask = at::empty({0}, parents.options());
  return tree;
}

at::Tensor row_guidance(const DecodeState& state, const at::Tensor& depths, std::int64_t rows) {
  if (!state.partly_guided) return state.guidance;
  const at::Tensor index = state.steps.unsqueeze(1) + depths;  // of the token that a row decides
  const at::Tensor full = state.guidance.unsqueeze(1).expand({-1, rows});
  return full.masked_fill(index >= state.interval.unsqueeze(1), 1.0);
}

ops::Distributions distributions(const Models& models, const DecodeState& state, const Filter& filter,
                                 const at::Tensor& logits, const at::Tensor& depths) {
  return ops::guide_and_filter(
      logits, {row_guidance(state, depths, logits.size(1)), filter.temperature, filter.top_k, filter.top_p,
               models.target->manifest().sampling_order});
}

Verified verify(const Models& models, DecodeState& state, const Draft& tree) {
  const Target& target = *models.target;
  const PassRows pass = pass_rows(state, tree);
  const auto [ids, positions] =
      ops::tree_rows(pass.codes, pass.depths, state.position, pass.first_id, state.last_position);
  Target::Output output = target.forward(target.embed(ids), positions, pass.mask, state.lengths, state.cache);
  if (pass.deciding.defined())
    output.hidden = rows_at(output.hidden, per_sequence(pass.deciding, state.guided));
  return {std::move(output.hidden), std::move(output.features), pass.deciding};
}

Accepted accept(const Models& models, const Method& method, const DecodeState& state, const Draft& tree,
                const Verified& verified) {
  ops::ScoredTree drafted;
  drafted.target =
      distributions(models, state, state.target_filter, models.target->logits(verified.hidden), tree.depths);
  drafted.draft = tree.distributions;
  drafted.tokens = tree.tokens;
  drafted.parents = tree.parents;
  drafted.draft_rows = tree.draft_rows;
  drafted.uniforms = ops::uniforms(state.seeds, state.steps, ops::Purpose::accept, tree.tokens.size(1));
  drafted.temperature = state.temperature;
  drafted.depth = tree.tokens.size(1) > 1 ? method.depth() : 0;
  ops::Judged result = ops::judge_tree(drafted, method.judge);
  return {std::move(result.path), std::move(result.count), std::move(result.token)};
}

void commit(DecodeState& state, const Draft& tree, const Verified& verified, const Accepted& accepted) {
  const KeptRows kept = kept_rows(accepted, verified.deciding);
  const std::int64_t width = kept.rows.size(1);
  if (width > 1) ops::compact_cache(state.cache, state.lengths, kept.rows, kept.count);
  const at::Tensor rows = ops::commit_tokens(
      {tree.tokens, tree.depths, accepted.path, accepted.count, accepted.token, kept.rows, kept.count},
      state);
  if (!state.draft_cache.defined()) return;
  at::Tensor fresh = state.fresh_features.narrow(1, 0, width);
  if (width == 1) {
    fresh.copy_(verified.features);
  } else {
    at::gather_out(fresh, verified.features, 1, rows.unsqueeze(2).expand({-1, -1, fresh.size(2)}));
  }
}

}  // namespace lamplighter
