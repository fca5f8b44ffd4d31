#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "kernels/children_args.h"
#include "kernels/cuda_stream.h"

namespace lamplighter {
namespace {

std::tuple<at::Tensor, at::Tensor> draw_children(const at::Tensor& values, const at::Tensor& seeds,
                                                 const at::Tensor& steps, const at::Tensor& nodes,
                                                 int64_t count, bool sampled,
                                                 const std::optional<at::Tensor>& statistics) {
  DrawChildrenArgs args =
      draw_children_args(values, seeds, steps, nodes, count, sampled, or_undefined(statistics));
  const CudaLauncher launcher(values);
  at::Tensor tokens = at::empty({args.images, args.rows.rows, count}, seeds.options());
  at::Tensor conditional = at::empty({args.images, args.rows.rows, count}, seeds.options().dtype(at::kFloat));
  const auto bytes = static_cast<int64_t>(draw_children_scratch_bytes(args.rows.vocabulary));
  at::Tensor scratch = at::empty({args.images * args.rows.rows, bytes}, seeds.options().dtype(at::kByte));
  args.tokens = tokens.mutable_data_ptr<int64_t>();
  args.conditional = conditional.mutable_data_ptr<float>();
  launcher.launch([&](void* stream) { draw_children_cuda(args, scratch.mutable_data_ptr(), stream); });
  return {tokens, conditional};
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CUDA, m) {
  m.impl("draw_children", &draw_children);
}

}  // namespace lamplighter
