#include "draft/verify.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>

#include <utility>

namespace lamplighter {

KeptRows kept_rows(const ops::Verified& walk, const std::optional<at::Tensor>& logits_row) {
  if (!logits_row) return {walk.path, walk.count, walk.count};
  const at::Tensor index = walk.count.unsqueeze(1);  // [I, 1]
  const at::Tensor last = walk.path.gather(1, index);
  const at::Tensor row = logits_row->gather(1, last);
  const at::Tensor ended = row.ne(last);
  const at::Tensor after = row.masked_fill(ended.logical_not(), -1);
  const at::Tensor count = walk.count + ended.squeeze(1).to(at::kLong);
  return {at::constant_pad_nd(walk.path, {0, 1}, -1).scatter_(1, index + 1, after), count, count};
}

Verified verify_tree(const RunState& run, const Draft& tree, const Scores& scores, ops::Distributions target,
                     std::int64_t depth, const ops::VerifyOptions& rule) {
  ops::ScoredTree scored;
  scored.target = std::move(target);
  scored.draft = tree.distributions;
  scored.tokens = tree.tokens;
  scored.parents = tree.nodes.parents;
  scored.draft_rows = tree.nodes.draft_rows;
  scored.uniforms = ops::uniforms(run.seeds, run.counters.steps, ops::Purpose::accept, tree.tokens.size(1));
  scored.temperature = run.temperature;
  scored.depth = depth;
  ops::Verified walk = ops::verify_tree(scored, rule);
  KeptRows kept = kept_rows(walk, scores.logits_row);
  return {std::move(walk), std::move(scored.target), tree.tokens, tree.nodes.depths, std::move(kept)};
}

ops::CommittedTree committed_tree(const Verified& verified) {
  const ops::Verified& walk = verified.walk;
  return {verified.tokens, verified.depths, walk.path,          walk.count,
          walk.token,      walk.status,     verified.kept.rows, verified.kept.added};
}

}  // namespace lamplighter
