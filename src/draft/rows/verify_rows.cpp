#include "draft/rows/verify_rows.h"

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

#include "draft/rows/chains.h"

namespace lamplighter {
namespace {

// Depths int64 [1, N] of a chain of tokens [I, N].
at::Tensor chain_depths(const at::Tensor& tokens) {
  return at::arange(tokens.size(1), tokens.options()).unsqueeze(0);
}

// int64 [I, M]: the values that are kept, in their order, then -1.
at::Tensor packed(const at::Tensor& values, const at::Tensor& kept) {
  const std::int64_t most = values.size(1);
  const at::Tensor index = at::where(kept, kept.cumsum(1) - 1, most);
  at::Tensor all = at::full({values.size(0), most + 1}, -1, values.options());
  return all.scatter_(1, index, values).narrow(1, 0, most).contiguous();
}

// The accepted drafts int64 [I, rows] of the windows, cut to their limits.
at::Tensor limited(const at::Tensor& accepted, const ParallelWindows& windows) {
  if (!windows.above) return at::minimum(accepted, windows.limits);
  // Every row takes the least of its own and its limit above what the row before took.
  const at::Tensor limit = windows.limits.cumsum(1);
  return limit + std::get<0>((accepted - limit).cummin(1));
}

// The walk along a chain that commits `tokens` int64 [I, M], the first count + 1 of them, behind node 0.
Verified committed_chain(const Draft& draft, const at::Tensor& tokens, const at::Tensor& count,
                         const at::Tensor& behind, const at::Tensor& bad) {
  Verified verified;
  verified.depths = chain_depths(tokens);
  verified.tokens = at::cat({draft.tokens.narrow(1, 0, 1), tokens.narrow(1, 0, tokens.size(1) - 1)}, 1)
                        .masked_fill(behind, -1);
  verified.walk.count = count;
  verified.walk.path = verified.depths.expand_as(behind).masked_fill(behind, -1);
  verified.walk.token = tokens.gather(1, count.unsqueeze(1)).squeeze(1).masked_fill(bad, -1);
  verified.walk.status = at::zeros_like(count);
  return verified;
}

Verified sample_positions(const RunState& run, const Draft& draft, const ParallelPositions& positions,
                          ops::Distributions target) {
  // The first row's number is the one that a tree of the last token alone would be sampled with.
  const at::Tensor uniforms =
      ops::uniforms(run.seeds, run.counters.steps, ops::Purpose::accept, draft.tokens.size(1));
  const at::Tensor tokens = ops::sample(target, uniforms, run.temperature);  // [I, N]
  const at::Tensor padding = chain_depths(draft.tokens) >= positions.sampled.unsqueeze(1);
  const at::Tensor bad = (tokens < 0).logical_and(padding.logical_not()).any(1);
  Verified verified = committed_chain(draft, tokens, positions.sampled - 1, padding, bad);
  verified.target = std::move(target);
  verified.kept = {verified.walk.path, verified.walk.count, verified.walk.count};
  return verified;
}

Verified verify_windows(const RunState& run, const Draft& draft, const ParallelWindows& windows,
                        const ops::Distributions& target, const ops::VerifyOptions& rule) {
  const std::int64_t rows = windows.rows, nodes = windows.nodes, all = rows * nodes;
  const at::Tensor probabilities = ops::probabilities(target);
  const ops::Verified chains =
      ops::verify_tree(chains_of(run, draft, windows, probabilities, ops::Purpose::accept, 1), rule);
  const at::Tensor depth = chain_depths(draft.tokens).narrow(1, 0, nodes);
  const at::Tensor count = chains.count.view_as(windows.limits);
  const at::Tensor accepted_of_rows = limited(count, windows).clamp_min(-1);
  const at::Tensor closed = accepted_of_rows < 0;
  const at::Tensor accepted = accepted_of_rows.unsqueeze(2);  // [I, rows, 1]
  const at::Tensor drafts = draft.tokens.narrow(1, 0, all).view({-1, rows, nodes});
  const at::Tensor next = drafts.gather(2, (accepted + 1).clamp_max(nodes - 1));
  const at::Tensor bonus = at::where(accepted < count.unsqueeze(2), next, chains.token.view_as(accepted));
  const at::Tensor code = at::where(depth < accepted, drafts.roll(-1, 2), bonus).flatten(1);
  const at::Tensor committed = (depth <= accepted).flatten(1);
  const at::Tensor codes = packed(code, committed);
  const at::Tensor last = (committed.sum(1) - 1).clamp_min(0);  // a complete image commits none
  const at::Tensor bad = (bonus.squeeze(2) < 0).logical_and(closed.logical_not()).any(1);
  // A complete image stands still.
  Verified verified = committed_chain(draft, codes.masked_fill(closed.all(1, true), 0), last,
                                      chain_depths(codes) > last.unsqueeze(1), bad);
  verified.target = probabilities;
  verified.accepted = accepted_of_rows;
  const at::Tensor stays = at::cat({committed, draft.tokens.slice(1, all) >= 0}, 1);
  verified.kept = {packed(chain_depths(draft.tokens).expand_as(stays), stays),
                   (stays.sum(1) - 1).clamp_min(0), verified.walk.count};
  return verified;
}

}  // namespace

Verified verify_rows(const RunState& run, const Draft& draft, const Scores& scores, ops::Distributions target,
                     const ops::VerifyOptions& rule) {
  if (const auto* positions = std::get_if<ParallelPositions>(&draft.kind))
    return sample_positions(run, draft, *positions, std::move(target));
  if (const auto* windows = std::get_if<ParallelWindows>(&draft.kind))
    return verify_windows(run, draft, *windows, target, rule);
  return verify_tree(run, draft, scores, std::move(target), 0, rule);
}

}  // namespace lamplighter
