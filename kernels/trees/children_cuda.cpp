#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "kernels/common/cuda_stream.h"
#include "kernels/sampling/args.h"
#include "kernels/trees/children_args.h"

namespace lamplighter {
namespace {

// Arguments with room for the results, and scratch memory.
struct Children {
  Children(const DrawChildrenArgs& checked, const at::Tensor& seeds)
      : args(checked),
        tokens(at::empty({args.images, args.rows.rows, args.count}, seeds.options())),
        conditional(at::empty(tokens.sizes(), seeds.options().dtype(at::kFloat))),
        scratch(seeds, args.images * args.rows.rows, draw_children_scratch_bytes(args.rows.vocabulary)) {
    args.tokens = tokens.mutable_data_ptr<int64_t>();
    args.conditional = conditional.mutable_data_ptr<float>();
  }

  DrawChildrenArgs args;
  at::Tensor tokens, conditional;
  CudaScratch scratch;
};

std::tuple<at::Tensor, at::Tensor> draw_children(const at::Tensor& values, const at::Tensor& seeds,
                                                 const at::Tensor& steps, const at::Tensor& nodes,
                                                 int64_t count, bool sampled,
                                                 const std::optional<at::Tensor>& statistics) {
  const DrawChildrenArgs args =
      draw_children_args(values, seeds, steps, nodes, count, sampled, or_undefined(statistics));
  const CudaLauncher launcher(values);
  const Children children(args, seeds);
  launcher.launch([&](void* stream) { draw_children_cuda(children.args, children.scratch.get(), stream); });
  return {children.tokens, children.conditional};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> draft_children(
    const at::Tensor& logits, const at::Tensor& guidance, const at::Tensor& temperature,
    const at::Tensor& top_k, const at::Tensor& top_p, c10::string_view order, const at::Tensor& seeds,
    const at::Tensor& steps, const at::Tensor& nodes, int64_t count, bool sampled) {
  GuideAndFilterArgs filter = guide_and_filter_args(logits, guidance, temperature, top_k, top_p, order);
  const CudaLauncher launcher(logits);
  const at::Tensor statistics = statistics_of(filter, logits);
  const Children children(draw_children_args(logits, seeds, steps, nodes, count, sampled, statistics), seeds);
  const CudaScratch rows(logits, filter.images * filter.logits.rows,
                         draft_children_cuda_bytes(filter.logits));
  launcher.launch([&](void* stream) {
    draft_children_cuda(filter, children.args, children.scratch.get(), rows.get<float>(), stream);
  });
  return {statistics, children.tokens, children.conditional};
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CUDA, m) {
  m.impl("draw_children", &draw_children);
  m.impl("draft_children", &draft_children);
}

}  // namespace lamplighter
