#include "decode/draft.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>

#include <algorithm>

#include "decode/row_ends.h"

namespace lamplighter {
namespace {

// Runs the rows that were committed since the last cycle; the last of them leads to the root's children.
at::Tensor extend(const Models& models, const Method& method, DecodeState& state) {
  const Drafter& drafter = *models.drafter;
  const std::int64_t rows = state.fixed_shapes
                                ? state.fresh_ids.size(1)
                                : std::max<std::int64_t>(1, state.fresh.max().item<std::int64_t>());
  const auto valid = [rows](const at::Tensor& all) { return all.narrow(1, 0, rows).contiguous(); };
  const at::Tensor features = valid(drafted_half(state.fresh_features, method, state));
  const at::Tensor hidden =
      drafter.forward(drafter.embed(valid(state.fresh_ids)), features, valid(state.fresh_positions),
                      at::empty({0}, state.fresh.options()), state.draft_lengths, state.draft_cache);
  state.draft_lengths.add_(state.fresh);
  if (rows == 1) return hidden;
  return rows_at(hidden, (state.fresh - 1).clamp_min_(0).unsqueeze(1));
}

// Entries of dimension 1; an undefined index stands for all of them.
at::Tensor select(const at::Tensor& values, const at::Tensor& index) {
  return index.defined() ? values.index_select(1, index) : values;
}

Draft grow_static(const Models& models, const Method& method, DecodeState& state, at::Tensor hidden) {
  const TreePlan& plan = state.plan;
  Draft tree;
  tree.parents = plan.parents;
  tree.draft_rows = plan.draft_rows;
  tree.depths = plan.depths;
  tree.mask = plan.mask;
  std::vector<at::Tensor> tokens{state.root.unsqueeze(1)};
  std::vector<ops::Distributions> rows;
  at::Tensor position, lengths;  // for the levels below the first
  if (plan.levels.size() > 1) {
    position = drafted_half(state.position, method, state);
    lengths = state.draft_lengths + plan.rows_before;  // [P, 2, Sd]
  }
  for (std::size_t depth = 0; depth < plan.levels.size(); ++depth) {
    const TreePlan::Level& level = plan.levels[depth];
    const Filter& filter = state.draft_filter;
    const auto [distributions, drawn, conditional] =
        ops::draft_children(models.drafter->logits(hidden),
                            {row_guidance(state, level.depths, level.nodes.size(0)), filter.temperature,
                             filter.top_k, filter.top_p, models.target->manifest().sampling_order},
                            {state.seeds, state.steps, level.nodes, level.draws, method.judge.sampled});
    rows.push_back(distributions);
    tokens.push_back(select(drawn.flatten(1), level.picks));
    if (level.next_count == 0) break;
    const DraftRows next{select(tokens.back(), level.next), select(hidden, level.parent_rows),
                         level.depths.narrow(1, 0, 1), level.next_mask};
    hidden = run_level(models, state, next, position, lengths[static_cast<std::int64_t>(depth)]);
  }
  tree.tokens = at::cat(tokens, 1);
  tree.distributions = ops::cat(rows);
  return tree;
}

}  // namespace

std::int64_t draft_rows(const Method& method) {
  const std::int64_t grown = method.is_dynamic() ? method.dynamic.passes * method.dynamic.width
                                                 : static_cast<std::int64_t>(method.tree.expanded.size());
  return std::max(grown, method.depth() + 2);  // an accepted path with a row end
}

at::Tensor drafted_half(const at::Tensor& per_sequence, const Method& method, const DecodeState& state) {
  return method.conditional && state.guided ? per_sequence.slice(0, 0, per_sequence.size(0), 2).contiguous()
                                            : per_sequence;
}

at::Tensor run_level(const Models& models, DecodeState& state, const DraftRows& rows,
                     const at::Tensor& position, const at::Tensor& lengths) {
  const Drafter& drafter = *models.drafter;
  const auto [ids, positions] =
      ops::tree_rows(rows.codes, rows.parent_depths, position, state.first_image_id, state.last_position - 1);
  return drafter.forward(drafter.embed(ids), rows.features, positions, rows.mask, lengths, state.draft_cache);
}

void prefill_drafter(const Drafter& drafter, const Method& method, const Prompts& prompts,
                     const at::Tensor& features, const at::Tensor& positions, DecodeState& state) {
  at::Tensor rows = features, places = positions, valid = prompts.valid.to(features.device());
  if (prompts.padded) {  // the drafter has the padding in front, the target behind
    places = at::arange(rows.size(1), valid.options()).expand_as(positions).contiguous();
    rows = rows_at(features, (places + valid.unsqueeze(1)).remainder(rows.size(1)));
    valid = at::full_like(valid, rows.size(1));
  }
  rows = drafted_half(rows, method, state);
  const std::optional<std::int64_t> stand_in = drafter.entry().prompt_id;
  const at::Tensor ids =
      stand_in ? at::full({rows.size(0), rows.size(1)}, *stand_in, valid.options())
               : drafted_half(prompts.ids.roll(-1, 1).narrow(1, 0, rows.size(1)), method, state).contiguous();
  drafter.forward(drafter.embed(ids), rows, drafted_half(places, method, state),
                  at::empty({0}, ids.options()), state.draft_lengths, state.draft_cache);
  state.draft_lengths.copy_(drafted_half(valid, method, state) - 1);
}

Draft draft(const Models& models, const Method& method, DecodeState& state) {
  const TreePlan& plan = state.plan;
  if (!method.drafts())
    return {state.root.unsqueeze(1), plan.parents, plan.draft_rows, plan.depths, plan.mask, {}};
  at::Tensor hidden = extend(models, method, state);
  Draft tree = method.is_dynamic() ? grow_dynamic(models, method, state, std::move(hidden))
                                   : grow_static(models, method, state, std::move(hidden));
  stop_at_row_ends(state, tree);
  return tree;
}

}  // namespace lamplighter
