#include "decode/open_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cummin.h>
#include <ATen/ops/full.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>
#include <utility>

#include "propose/windows/chains.h"

namespace lamplighter {
namespace {

// int64 [I, M]: the values that are kept in front, in their order, then -1.
at::Tensor packed(const at::Tensor& values, const at::Tensor& kept) {
  const std::int64_t most = values.size(1);
  const at::Tensor place = at::where(kept, kept.cumsum(1) - 1, most);
  at::Tensor all = at::full({values.size(0), most + 1}, -1, values.options());
  return all.scatter_(1, place, values).narrow(1, 0, most).contiguous();
}

// Of the accepted drafts int64 [I, rows] of the windows what is within their limits.
at::Tensor limited(const at::Tensor& accepted, const Draft& draft) {
  if (!draft.above) return at::minimum(accepted, draft.limits);
  // Every row takes the least of its own and its limit above what the row before took.
  const at::Tensor limit = draft.limits.cumsum(1);
  return limit + std::get<0>((accepted - limit).cummin(1));
}

}  // namespace

at::Tensor chain_depths(const at::Tensor& tokens) {
  return at::arange(tokens.size(1), tokens.options()).unsqueeze(0);
}

Judged draw_open_rows(const RunState& run, const Draft& draft, ops::Distributions target) {
  const std::int64_t nodes = draft.tokens.size(1);
  // The first row's number is the one that a tree of the root alone would be drawn with.
  const at::Tensor uniforms = ops::uniforms(run.seeds, run.steps, ops::Purpose::accept, nodes);
  const at::Tensor drawn = ops::draw(target, uniforms, run.temperature);  // [I, N]
  const at::Tensor number = chain_depths(draft.tokens);                   // [1, N]
  const at::Tensor closed = number >= draft.open.unsqueeze(1);
  const at::Tensor bad = (drawn < 0).logical_and(closed.logical_not()).any(1);
  Judged judged;
  judged.count = draft.open - 1;
  judged.path = number.expand_as(closed).masked_fill(closed, -1);
  judged.token = drawn.gather(1, judged.count.unsqueeze(1)).squeeze(1).masked_fill(bad, -1);
  judged.status = at::zeros_like(judged.count);
  judged.chain =
      at::cat({draft.tokens.narrow(1, 0, 1), drawn.narrow(1, 0, nodes - 1)}, 1).masked_fill(closed, -1);
  judged.target = std::move(target);
  return judged;
}

Judged judge_windows(const RunState& run, const Draft& draft, const ops::Distributions& target,
                     const ops::JudgeOptions& rule) {
  const std::int64_t rows = draft.windows.rows, nodes = draft.windows.nodes, all = rows * nodes;
  Judged judged;
  judged.target = ops::probabilities(target);
  const ops::Judged chains =
      ops::judge_tree(chains_of(run, draft, judged.target.values, ops::Purpose::accept, 1), rule);
  const at::Tensor depth = chain_depths(draft.tokens).narrow(1, 0, nodes);
  const at::Tensor count = chains.count.view_as(draft.limits);
  judged.accepted = limited(count, draft).clamp_min(-1);
  const at::Tensor closed = judged.accepted < 0;
  const at::Tensor accepted = judged.accepted.unsqueeze(2);  // [I, rows, 1]
  const at::Tensor drafts = draft.tokens.narrow(1, 0, all).view({-1, rows, nodes});
  const at::Tensor next = drafts.gather(2, (accepted + 1).clamp_max(nodes - 1));
  const at::Tensor bonus = at::where(accepted < count.unsqueeze(2), next, chains.token.view_as(accepted));
  const at::Tensor code = at::where(depth < accepted, drafts.roll(-1, 2), bonus).flatten(1);
  const at::Tensor committed = (depth <= accepted).flatten(1);
  const at::Tensor codes = packed(code, committed);
  const at::Tensor number = chain_depths(codes);
  judged.count = (committed.sum(1) - 1).clamp_min(0);  // a complete picture has none
  const at::Tensor behind = number > judged.count.unsqueeze(1);
  judged.path = number.expand_as(behind).masked_fill(behind, -1);
  const at::Tensor bad = (bonus.squeeze(2) < 0).logical_and(closed.logical_not()).any(1);
  // A complete picture stands still.
  judged.token = codes.gather(1, judged.count.unsqueeze(1))
                     .squeeze(1)
                     .masked_fill(closed.all(1), 0)
                     .masked_fill(bad, -1);
  judged.status = at::zeros_like(judged.count);
  judged.chain =
      at::cat({draft.tokens.narrow(1, 0, 1), codes.narrow(1, 0, all - 1)}, 1).masked_fill(behind, -1);
  const at::Tensor stays = at::cat({committed, draft.tokens.slice(1, all) >= 0}, 1);
  judged.kept.rows = packed(chain_depths(draft.tokens).expand_as(stays), stays);
  judged.kept.count = (stays.sum(1) - 1).clamp_min(0);
  return judged;
}

}  // namespace lamplighter
