#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <tuple>

#include "kernels/children_args.h"
#include "kernels/cuda_stream.h"

namespace lamplighter {
namespace {

std::tuple<at::Tensor, at::Tensor> draw_children(const at::Tensor& probabilities, const at::Tensor& seeds,
                                                 const at::Tensor& steps, const at::Tensor& nodes,
                                                 int64_t count, bool sampled) {
  DrawChildrenArgs args = draw_children_args(probabilities, seeds, steps, nodes, count, sampled);
  const CudaLauncher launcher(probabilities);
  at::Tensor tokens = at::empty({args.images, args.width, count}, seeds.options());
  at::Tensor conditional = at::empty({args.images, args.width, count}, probabilities.options());
  const auto bytes = static_cast<int64_t>(draw_children_scratch_bytes(args.vocabulary));
  at::Tensor scratch = at::empty({args.images * args.width, bytes}, seeds.options().dtype(at::kByte));
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
