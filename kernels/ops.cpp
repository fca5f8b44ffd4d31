#include "kernels/ops.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>

#include <optional>

#include "kernels/anchor.h"

namespace lamplighter::ops {
namespace {

template <typename Signature>
c10::TypedOperatorHandle<Signature> handle(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace

__attribute__((visibility("default"))) at::Tensor uniforms(const at::Tensor& seeds, const at::Tensor& steps,
                                                           Purpose purpose, std::int64_t count) {
  static const auto op = handle<at::Tensor(const at::Tensor&, const at::Tensor&, std::int64_t, std::int64_t)>(
      "lamplighter::uniforms");
  return op.call(seeds, steps, static_cast<std::int64_t>(purpose), count);
}

__attribute__((visibility("default"))) at::Tensor guide_and_filter(
    const at::Tensor& logits, const at::Tensor& guidance, const at::Tensor& temperature,
    const at::Tensor& top_k, const at::Tensor& top_p, const std::string& order) {
  static const auto op =
      handle<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                        const at::Tensor&, c10::string_view)>("lamplighter::guide_and_filter");
  return op.call(logits, guidance, temperature, top_k, top_p, order);
}

__attribute__((visibility("default"))) at::Tensor draw(const at::Tensor& probabilities,
                                                       const at::Tensor& uniforms,
                                                       const at::Tensor& temperature) {
  static const auto op =
      handle<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>("lamplighter::draw");
  return op.call(probabilities, uniforms, temperature);
}

__attribute__((visibility("default"))) std::tuple<at::Tensor, at::Tensor> draw_children(
    const at::Tensor& probabilities, const at::Tensor& seeds, const at::Tensor& steps,
    const at::Tensor& nodes, std::int64_t count, bool sampled) {
  static const auto op = handle<std::tuple<at::Tensor, at::Tensor>(
      const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, std::int64_t, bool)>(
      "lamplighter::draw_children");
  return op.call(probabilities, seeds, steps, nodes, count, sampled);
}

__attribute__((visibility("default"))) void compact_cache(at::Tensor& cache, const at::Tensor& lengths,
                                                          const at::Tensor& path, const at::Tensor& count) {
  static const auto op = handle<void(at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&)>(
      "lamplighter::compact_cache");
  op.call(cache, lengths, path, count);
}

__attribute__((visibility("default"))) VerifyResult verify_tree(const DraftedTree& tree,
                                                                const VerifyOptions& options) {
  using T = const at::Tensor&;
  using Results = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
  static const auto op =
      handle<Results(T, T, T, T, T, T, T, T, c10::string_view, c10::string_view, bool, std::int64_t, T,
                     std::int64_t, std::int64_t, const std::optional<at::Tensor>&)>(
          "lamplighter::verify_tree");
  const auto or_empty = [&](const at::Tensor& tensor, at::ScalarType dtype) {
    return tensor.defined() ? tensor : at::empty({0}, tree.target.options().dtype(dtype));
  };
  std::optional<at::Tensor> syntax_ids;
  if (options.syntax_ids.defined()) syntax_ids = options.syntax_ids;
  auto [path, count, token, final, status] = op.call(
      tree.target, tree.draft, tree.tokens, tree.parents, tree.draft_rows, tree.uniforms, tree.temperature,
      or_empty(options.neighbours, at::kInt), options.rule, options.residual, options.sampled, options.k,
      or_empty(options.bounds, at::kFloat), options.first_image_id, tree.depth, syntax_ids);
  return {path, count, token, final, status};
}

__attribute__((visibility("default"))) std::tuple<at::Tensor, at::Tensor, at::Tensor> expand_dynamic(
    const at::Tensor& probabilities, const at::Tensor& scores, std::int64_t k) {
  static const auto op = handle<std::tuple<at::Tensor, at::Tensor, at::Tensor>(
      const at::Tensor&, const at::Tensor&, std::int64_t)>("lamplighter::expand_dynamic");
  return op.call(probabilities, scores, k);
}

__attribute__((visibility("default"))) std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>
rerank_dynamic(const at::Tensor& tokens, const at::Tensor& scores, const at::Tensor& frontiers,
               std::int64_t nodes) {
  static const auto op = handle<std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>(
      const at::Tensor&, const at::Tensor&, const at::Tensor&, std::int64_t)>("lamplighter::rerank_dynamic");
  return op.call(tokens, scores, frontiers, nodes);
}

__attribute__((visibility("default"))) std::string missing_operators() {
  lamplighter_ops_anchor();
  std::string missing;
  for (const char* name : {"rms_norm", "add_rms_norm", "silu_mul", "pack_linear", "pack_linear_int8",
                           "linear", "attend", "compact_cache", "uniforms", "guide_and_filter", "draw",
                           "draw_children", "expand_dynamic", "rerank_dynamic", "verify_tree"}) {
    if (!c10::Dispatcher::singleton().findSchema({std::string("lamplighter::") + name, ""})) {
      missing += (missing.empty() ? "" : ", ") + std::string(name);
    }
  }
  return missing;
}

}  // namespace lamplighter::ops
