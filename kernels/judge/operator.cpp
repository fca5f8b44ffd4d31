#include <ATen/Parallel.h>

#include <optional>

#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/common/scratch.h"
#include "kernels/judge/args.h"
#include "kernels/judge/results.h"

namespace lamplighter {
namespace {

using Five = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

void run_cpu(const JudgeArgs& args) {
  const auto kernel = for_isa([](auto isa) { return &judge_cpu<isa.value>; });
  const size_t bytes = judge_scratch_floats(args) * sizeof(float);
  at::parallel_for(0, args.images, 1, [&](int64_t begin, int64_t end) {
    kernel(args, begin, end, static_cast<float*>(thread_scratch(bytes)));
  });
}

Five judged_shapes(const ops::ScoredTree& tree, const ops::JudgeOptions& options) {
  constexpr const char* kOp = "judge_tree";
  const auto images_of = [&](const char* name, const ops::Distributions& rows) {
    return check_distributions(kOp, name, rows.values, optional(rows.statistics));
  };
  const c10::SymInt images = images_of("target", tree.target);
  images_of("draft", tree.draft);
  check_dtype(kOp, "tokens", tree.tokens, at::kLong);
  check_dtype(kOp, "parents", tree.parents, at::kLong);
  check_dtype(kOp, "draft_rows", tree.draft_rows, at::kLong);
  check_dtype(kOp, "uniforms", tree.uniforms, at::kFloat);
  check_dtype(kOp, "temperature", tree.temperature, at::kFloat);
  check_dtype(kOp, "neighbours", options.neighbours, at::kInt);
  check_dtype(kOp, "bounds", options.bounds, at::kFloat);
  if (options.syntax_ids.defined()) check_dtype(kOp, "syntax_ids", options.syntax_ids, at::kLong);
  if (options.codebook.defined()) check_dtype(kOp, "codebook", options.codebook, at::kFloat);
  return {like(tree.tokens, {images, tree.depth + 1}), like(tree.tokens, {images}),
          like(tree.tokens, {images}), like(tree.uniforms, {images, tree.target.values.sym_size(2)}),
          like(tree.tokens, {images})};
}

template <On on>
Five judge(const ops::ScoredTree& tree, const ops::JudgeOptions& options) {
  if constexpr (on == On::meta) {
    return judged_shapes(tree, options);
  } else {
    JudgeArgs args = judge_args(tree, options);
    const JudgeResults results(args, tree.tokens, tree.uniforms);
    if constexpr (on == On::cuda) {
      on_cuda(tree.target.values, [&](void* stream) {
        const CudaScratch scratch(tree.target.values, 1, judge_cuda_bytes(args));
        judge_cuda(args, scratch.get(), stream);
      });
    } else {
      run_cpu(args);
    }
    return {results.path, results.count, results.token, results.final, results.status};
  }
}

template <On on>
Five judge_tree(const at::Tensor& target, const at::Tensor& draft, const at::Tensor& tokens,
                const at::Tensor& parents, const at::Tensor& draft_rows, const at::Tensor& uniforms,
                const at::Tensor& temperature, const at::Tensor& neighbours, int64_t rule, int64_t residual,
                bool sampled, int64_t k, const at::Tensor& bounds, int64_t first_image_id, int64_t depth,
                const std::optional<at::Tensor>& syntax_ids,
                const std::optional<at::Tensor>& target_statistics,
                const std::optional<at::Tensor>& draft_statistics,
                const std::optional<at::Tensor>& codebook) {
  return judge<on>({{target, or_undefined(target_statistics)},
                    {draft, or_undefined(draft_statistics)},
                    tokens,
                    parents,
                    draft_rows,
                    uniforms,
                    temperature,
                    depth},
                   {judge_rule(rule), judge_residual(residual), sampled, neighbours, bounds, k,
                    first_image_id, or_undefined(syntax_ids), or_undefined(codebook)});
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  // rule, residual: places in the enumerations of acceptance/rules.h.
  define(
      m,
      "judge_tree(Tensor target, Tensor draft, Tensor tokens, Tensor parents, Tensor draft_rows, "
      "Tensor uniforms, Tensor temperature, Tensor neighbours, int rule, int residual, bool sampled, int k, "
      "Tensor bounds, int first_image_id, int depth, Tensor? syntax_ids=None, "
      "Tensor? target_statistics=None, Tensor? draft_statistics=None, Tensor? codebook=None) "
      "-> (Tensor path, Tensor count, Tensor token, Tensor final, Tensor status)",
      [](auto on) { return &judge_tree<on.value>; });
}

}  // namespace lamplighter
