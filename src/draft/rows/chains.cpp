#include "draft/rows/chains.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>

namespace lamplighter {

ops::ScoredTree chains_of(const RunState& run, const Draft& draft, const ParallelWindows& windows,
                          const at::Tensor& target, ops::Purpose purpose, std::int64_t kinds) {
  const std::int64_t rows = windows.rows, nodes = windows.nodes;
  const at::Tensor& steps = run.counters.steps;
  const at::Tensor number = at::arange(nodes, steps.options()).unsqueeze(0);
  ops::ScoredTree chains;
  chains.target = target.narrow(1, 0, rows * nodes).reshape({-1, nodes, target.size(2)}).contiguous();
  chains.draft = draft.distributions;
  chains.tokens = draft.tokens.narrow(1, 0, rows * nodes).reshape({-1, nodes}).contiguous();
  chains.parents = number - 1;
  chains.draft_rows = at::where(number < nodes - 1, number, -1);
  chains.uniforms = ops::uniforms(run.seeds, steps, purpose, windows.most_rows * kinds * windows.most_nodes)
                        .view({-1, windows.most_rows, kinds, windows.most_nodes})
                        .narrow(1, 0, rows)
                        .narrow(3, 0, nodes)
                        .reshape({-1, kinds * nodes})
                        .contiguous();
  chains.temperature = run.temperature.repeat_interleave(rows);
  chains.depth = nodes - 1;
  return chains;
}

at::Tensor seen_in_pass(const at::Tensor& tokens, const ParallelWindows& windows, const at::Tensor& positions,
                        bool drafts) {
  const at::Tensor node = at::arange(tokens.size(1), tokens.options());
  const at::Tensor chain = node.floor_divide(windows.nodes);
  const at::Tensor own =
      (chain.unsqueeze(1) == chain.unsqueeze(0)) & (node.unsqueeze(0) <= node.unsqueeze(1));
  at::Tensor visible = tokens >= 0;  // [I, N]
  if (!drafts) visible = visible & (node.remainder(windows.nodes) == 0);
  const at::Tensor others = (chain.unsqueeze(1) != chain.unsqueeze(0)) & visible.unsqueeze(1) &
                            (positions.unsqueeze(1) <= positions.unsqueeze(2));
  return own | others;
}

}  // namespace lamplighter
