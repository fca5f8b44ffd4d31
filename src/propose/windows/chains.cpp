#include "propose/windows/chains.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>

namespace lamplighter {

ops::ScoredTree chains_of(const RunState& run, const Draft& draft, const at::Tensor& target,
                          ops::Purpose purpose, std::int64_t kinds) {
  const auto& [rows, nodes, most_rows, most_nodes] = draft.windows;
  const at::Tensor number = at::arange(nodes, run.steps.options()).unsqueeze(0);
  ops::ScoredTree chains;
  chains.target = target.narrow(1, 0, rows * nodes).reshape({-1, nodes, target.size(2)}).contiguous();
  chains.draft = draft.distributions;
  chains.tokens = draft.tokens.narrow(1, 0, rows * nodes).reshape({-1, nodes}).contiguous();
  chains.parents = number - 1;
  chains.draft_rows = at::where(number < nodes - 1, number, -1);
  chains.uniforms = ops::uniforms(run.seeds, run.steps, purpose, most_rows * kinds * most_nodes)
                        .view({-1, most_rows, kinds, most_nodes})
                        .narrow(1, 0, rows)
                        .narrow(3, 0, nodes)
                        .reshape({-1, kinds * nodes})
                        .contiguous();
  chains.temperature = run.temperature.repeat_interleave(rows);
  chains.depth = nodes - 1;
  return chains;
}

}  // namespace lamplighter
