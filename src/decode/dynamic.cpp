#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <tuple>

#include "decode/draft.h"

namespace lamplighter {
Draft grow_dynamic(const Models& models, const Method& method, DecodeState& state, at::Tensor hidden) {
  const std::int64_t width = method.dynamic.width;
  const auto integers = state.steps.options();
  const at::Tensor position = drafted_half(state.position, method, state);
  const at::Tensor lengths = state.draft_lengths + state.plan.rows_before;  // [P, 2, Sd]
  std::vector<at::Tensor> pool_tokens, pool_scores, frontiers;

  at::Tensor depths = at::zeros({1, 1}, integers);
  at::Tensor scores = at::zeros({state.images(), 1}, state.guidance.options());
  at::Tensor mask;  // int64 [I, width], ancestors of the frontier among all rows that were run
  for (std::int64_t pass = 0;; ++pass) {
    const ops::Distributions rows =
        distributions(models, state, state.draft_filter, models.drafter->logits(hidden), depths);
    auto [tokens, candidate_scores, frontier] = ops::expand_dynamic(rows, scores, width);
    pool_tokens.push_back(tokens);
    pool_scores.push_back(candidate_scores);
    if (pass == method.dynamic.passes) break;
    frontiers.push_back(frontier);
    const at::Tensor parents = frontier.floor_divide(width);  // slot of the last frontier; the root at first
    const at::Tensor bits = state.plan.own_bits.narrow(0, pass, 1);  // [1, width]
    mask = pass == 0 ? bits.expand({state.images(), -1}) : mask.gather(1, parents).bitwise_or(bits);
    const DraftRows next{tokens.gather(1, frontier),
                         rows_at(hidden, per_sequence(parents, state.guided && !method.conditional)), depths,
                         mask.unsqueeze(2).contiguous()};
    hidden = run_level(models, state, next, position, lengths[pass]);
    scores = candidate_scores.gather(1, frontier);
    depths = depths + 1;
  }

  Draft tree;
  std::tie(tree.tokens, tree.parents, tree.depths, tree.mask, std::ignore) = ops::rerank_dynamic(
      at::cat(pool_tokens, 1), at::cat(pool_scores, 1), at::stack(frontiers, 1), method.dynamic.nodes);
  tree.tokens.select(1, 0).copy_(state.root);
  tree.draft_rows = at::full_like(tree.parents, -1);
  return tree;
}

}  // namespace lamplighter
