#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/minimum.h>

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

ops::Distributions distributions(const Models& models, const DecodeState& state, const Filter& filter,
                                 const at::Tensor& logits, const at::Tensor& depths) {
  at::Tensor guidance = state.guidance;
  if (state.partly_guided) {
    const at::Tensor index = state.steps.unsqueeze(1) + depths;  // of the token that a row decides
    const at::Tensor full = guidance.unsqueeze(1).expand({-1, logits.size(1)});
    guidance = full.masked_fill(index >= state.interval.unsqueeze(1), 1.0);
  }
  return ops::guide_and_filter(logits, guidance, filter.temperature, filter.top_k, filter.top_p,
                               models.target->manifest().sampling_order);
}

Verified verify(const Models& models, DecodeState& state, const Draft& tree) {
  const Target& target = *models.target;
  const PassRows pass = pass_rows(state, tree);
  const at::Tensor depths = per_sequence(pass.depths, state.guided && pass.depths.size(0) > 1);
  const at::Tensor positions = (state.position.unsqueeze(1) + depths).clamp_max(state.last_position);
  Target::Output output = target.forward(target.embed(per_sequence(pass.ids, state.guided)), positions,
                                         pass.mask, state.lengths, state.cache);
  if (pass.deciding.defined())
    output.hidden = rows_at(output.hidden, per_sequence(pass.deciding, state.guided));
  return {std::move(output.hidden), std::move(output.features), pass.deciding};
}

Accepted accept(const Models& models, const Method& method, const DecodeState& state, const Draft& tree,
                const Verified& verified) {
  ops::DraftedTree drafted;
  drafted.target =
      distributions(models, state, state.target_filter, models.target->logits(verified.hidden), tree.depths);
  drafted.draft = tree.distributions;
  drafted.tokens = tree.tokens;
  drafted.parents = tree.parents;
  drafted.draft_rows = tree.draft_rows;
  drafted.uniforms = ops::uniforms(state.seeds, state.steps, ops::Purpose::accept, tree.tokens.size(1));
  drafted.temperature = state.temperature;
  drafted.depth = tree.tokens.size(1) > 1 ? method.depth() : 0;
  ops::VerifyResult result = ops::verify_tree(drafted, method.judge);
  return {std::move(result.path), std::move(result.count), std::move(result.token)};
}

void commit(DecodeState& state, const Draft& tree, const Verified& verified, const Accepted& accepted) {
  const std::int64_t depth = accepted.path.size(1) - 1;
  // The tokens of the accepted nodes, then the bonus token, then whatever: later cycles write over it.
  const at::Tensor bonus = accepted.token.unsqueeze(1), count = accepted.count.unsqueeze(1);
  at::Tensor tokens = bonus, places = state.steps.unsqueeze(1);
  if (depth > 0) {
    const at::Tensor drafted = tree.tokens.gather(1, accepted.path.narrow(1, 1, depth).clamp_min(0));
    tokens = at::constant_pad_nd(drafted, {0, 1}).scatter_(1, count, bonus);
    places = places + at::arange(depth + 1, places.options());
  }
  state.codes.scatter_(1, places, tokens);
  state.bad.logical_or_(accepted.token < 0);
  const KeptRows kept = kept_rows(accepted, verified.deciding);
  if (kept.rows.size(1) > 1) ops::compact_cache(state.cache, state.lengths, kept.rows, kept.count);

  // An image commits no more than it lacks; one that is complete stands still.
  const at::Tensor advance = at::minimum(accepted.count + 1, state.total - state.steps);
  const at::Tensor rows = advance + (kept.count - accepted.count);
  if (state.draft_cache.defined()) {
    at::Tensor ids = tokens + state.first_image_id;
    if (verified.deciding.defined()) {
      ids = at::constant_pad_nd(ids, {0, 1}).scatter_(1, count, state.row_end);
      ids.scatter_(1, kept.count.unsqueeze(1), bonus + state.first_image_id);
    }
    const std::int64_t width = kept.rows.size(1);
    state.fresh.copy_(rows);
    state.fresh_ids.narrow(1, 0, width).copy_(ids);
    state.fresh_features.narrow(1, 0, width)
        .copy_(width > 1 ? rows_at(verified.features, per_sequence(kept.rows.clamp_min(0), state.guided))
                         : verified.features);
  }
  state.first.copy_(state.steps);
  state.steps.add_(advance);
  state.root.copy_(state.codes.gather(1, (state.steps - 1).unsqueeze(1)).squeeze(1).clamp_min(0));
  const at::Tensor sequence_rows = per_sequence(rows, state.guided);
  state.lengths.add_(sequence_rows);
  state.position.add_(sequence_rows);
}

}  // namespace lamplighter
