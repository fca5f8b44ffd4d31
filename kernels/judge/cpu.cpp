#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>

#include "kernels/common/isa.h"
#include "kernels/judge/args.h"
#include "kernels/judge/results.h"

namespace lamplighter {
namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> verify_tree_cpu(
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
  const VerifyResults results(args, tokens, uniforms);
  const size_t floats = verify_scratch_floats(args);
  at::Tensor scratch = at::empty({at::get_num_threads(), static_cast<int64_t>(floats)}, uniforms.options());
  auto* scratch_base = scratch.mutable_data_ptr<float>();
  const Isa isa = active_isa();
  const auto kernel = isa == Isa::kAvx512 ? verify_avx512 : isa == Isa::kAvx2 ? verify_avx2 : verify_portable;
  at::parallel_for(0, args.images, 1, [&](int64_t begin, int64_t end) {
    kernel(args, begin, end, scratch_base + static_cast<size_t>(at::get_thread_num()) * floats);
  });
  return results.tuple();
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CPU, m) {
  m.impl("verify_tree", verify_tree_cpu);
}

}  // namespace lamplighter
