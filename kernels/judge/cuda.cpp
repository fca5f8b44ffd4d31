#include <torch/library.h>

#include <optional>

#include "kernels/common/cuda_stream.h"
#include "kernels/judge/args.h"
#include "kernels/judge/results.h"

namespace lamplighter {
namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> verify_tree(
    const at::Tensor& target, const at::Tensor& draft, const at::Tensor& tokens, const at::Tensor& parents,
    const at::Tensor& draft_rows, const at::Tensor& uniforms, const at::Tensor& temperature,
    const at::Tensor& neighbours, c10::string_view rule, c10::string_view residual, bool sampled, int64_t k,
    const at::Tensor& bounds, int64_t first_image_id, int64_t depth,
    const std::optional<at::Tensor>& syntax_ids, const std::optional<at::Tensor>& target_statistics,
    const std::optional<at::Tensor>& draft_statistics) {
  const at::Tensor of_target = or_undefined(target_statistics), of_draft = or_undefined(draft_statistics);
  VerifyArgs args = verify_args(
      {target, of_target, draft, of_draft, tokens, parents, draft_rows, uniforms, temperature}, neighbours,
      rule, residual, sampled, k, bounds, first_image_id, depth, or_undefined(syntax_ids));
  const CudaLauncher launcher(target);
  const VerifyResults results(args, tokens, uniforms);
  const CudaScratch scratch(target, 1, verify_cuda_bytes(args));
  launcher.launch([&](void* stream) { verify_cuda(args, scratch.get(), stream); });
  return results.tuple();
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CUDA, m) {
  m.impl("verify_tree", &verify_tree);
}

}  // namespace lamplighter
