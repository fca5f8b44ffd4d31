#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>
#include <string>
#include <tuple>

#include "kernels/common/cpu_rows.h"
#include "kernels/common/executor.h"
#include "kernels/ops.h"
#include "kernels/trees/children_args.h"
#include "kernels/trees/children_body.h"

namespace lamplighter {

size_t draw_children_scratch_bytes(int64_t vocabulary) {
  const size_t bytes = kExecutorCells * sizeof(double) +
                       static_cast<size_t>(vocabulary) * (children::kScratchPerToken + sizeof(float));
  return (bytes + 63) / 64 * 64;
}

namespace {

std::tuple<at::Tensor, at::Tensor> draw_children_cpu(const at::Tensor& values, const at::Tensor& seeds,
                                                     const at::Tensor& steps, const at::Tensor& nodes,
                                                     int64_t count, bool sampled,
                                                     const std::optional<at::Tensor>& statistics) {
  DrawChildrenArgs args =
      draw_children_args(values, seeds, steps, nodes, count, sampled, or_undefined(statistics));
  at::Tensor tokens = at::empty({args.images, args.rows.rows, count}, seeds.options());
  at::Tensor conditional = at::empty({args.images, args.rows.rows, count}, seeds.options().dtype(at::kFloat));
  args.tokens = tokens.mutable_data_ptr<int64_t>();
  args.conditional = conditional.mutable_data_ptr<float>();
  const ThreadScratch scratch(draw_children_scratch_bytes(args.rows.vocabulary));
  const auto kernel = for_isa(draw_children_portable, draw_children_avx2, draw_children_avx512);
  for_row_parts(args.images * args.rows.rows, args.rows.vocabulary,
                [&](int64_t begin, int64_t end) { kernel(args, begin, end, scratch.get()); });
  return {tokens, conditional};
}

// One after the other: a CPU launches nothing.
std::tuple<at::Tensor, at::Tensor, at::Tensor> draft_children_cpu(
    const at::Tensor& logits, const at::Tensor& guidance, const at::Tensor& temperature,
    const at::Tensor& top_k, const at::Tensor& top_p, c10::string_view order, const at::Tensor& seeds,
    const at::Tensor& steps, const at::Tensor& nodes, int64_t count, bool sampled) {
  const ops::Distributions rows =
      ops::guide_and_filter(logits, guidance, temperature, top_k, top_p, std::string(order));
  auto [tokens, conditional] =
      draw_children_cpu(logits, seeds, steps, nodes, count, sampled, rows.statistics);
  return {rows.statistics, tokens, conditional};
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CPU, m) {
  m.impl("draw_children", draw_children_cpu);
  m.impl("draft_children", draft_children_cpu);
}

}  // namespace lamplighter
