#include "kernels/ops.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <optional>

#include "kernels/anchor.h"

namespace lamplighter::ops {
namespace {

template <typename Signature>
c10::TypedOperatorHandle<Signature> handle(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

using Optional = std::optional<at::Tensor>;

Optional optional(const at::Tensor& tensor) {
  return tensor.defined() ? Optional(tensor) : std::nullopt;
}

}  // namespace

__attribute__((visibility("default"))) at::Tensor uniforms(const at::Tensor& seeds, const at::Tensor& steps,
                                                           Purpose purpose, std::int64_t count) {
  static const auto op = handle<at::Tensor(const at::Tensor&, const at::Tensor&, std::int64_t, std::int64_t)>(
      "lamplighter::uniforms");
  return op.call(seeds, steps, static_cast<std::int64_t>(purpose), count);
}

__attribute__((visibility("default"))) Distributions guide_and_filter(
    const at::Tensor& logits, const at::Tensor& guidance, const at::Tensor& temperature,
    const at::Tensor& top_k, const at::Tensor& top_p, const std::string& order) {
  static const auto op =
      handle<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                        const at::Tensor&, c10::string_view)>("lamplighter::guide_and_filter");
  return {logits, op.call(logits, guidance, temperature, top_k, top_p, order)};
}

__attribute__((visibility("default"))) at::Tensor probabilities(const Distributions& rows) {
  static const auto op =
      handle<at::Tensor(const at::Tensor&, const at::Tensor&)>("lamplighter::probabilities");
  return rows.statistics.defined() ? op.call(rows.values, rows.statistics) : rows.values;
}

__attribute__((visibility("default"))) Distributions cat(const std::vector<Distributions>& rows) {
  if (rows.size() == 1) return rows.front();
  std::vector<at::Tensor> values, statistics;
  for (const Distributions& part : rows) {
    values.push_back(part.values);
    if (part.statistics.defined()) statistics.push_back(part.statistics);
  }
  return {at::cat(values, 1), statistics.empty() ? at::Tensor() : at::cat(statistics, 1)};
}

__attribute__((visibility("default"))) at::Tensor draw(const Distributions& rows, const at::Tensor& uniforms,
                                                       const at::Tensor& temperature) {
  static const auto op =
      handle<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const Optional&)>(
          "lamplighter::draw");
  return op.call(rows.values, uniforms, temperature, optional(rows.statistics));
}

__attribute__((visibility("default"))) std::tuple<at::Tensor, at::Tensor> draw_children(
    const Distributions& rows, const at::Tensor& seeds, const at::Tensor& steps, const at::Tensor& nodes,
    std::int64_t count, bool sampled) {
  static const auto op =
      handle<std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                const at::Tensor&, std::int64_t, bool, const Optional&)>(
          "lamplighter::draw_children");
  return op.call(rows.values, seeds, steps, nodes, count, sampled, optional(rows.statistics));
}

__attribute__((visibility("default"))) std::tuple<Distributions, at::Tensor, at::Tensor> draft_children(
    const at::Tensor& logits, const at::Tensor& guidance, const at::Tensor& temperature,
    const at::Tensor& top_k, const at::Tensor& top_p, const std::string& order, const at::Tensor& seeds,
    const at::Tensor& steps, const at::Tensor& nodes, std::int64_t count, bool sampled) {
  using T = const at::Tensor&;
  using Results = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
  static const auto op = handle<Results(T, T, T, T, T, c10::string_view, T, T, T, std::int64_t, bool)>(
      "lamplighter::draft_children");
  auto [statistics, tokens, conditional] =
      op.call(logits, guidance, temperature, top_k, top_p, order, seeds, steps, nodes, count, sampled);
  return {Distributions(logits, statistics), tokens, conditional};
}

__attribute__((visibility("default"))) void compact_cache(at::Tensor& cache, const at::Tensor& lengths,
                                                          const at::Tensor& path, const at::Tensor& count) {
  static const auto op = handle<void(at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&)>(
      "lamplighter::compact_cache");
  op.call(cache, lengths, path, count);
}

__attribute__((visibility("default"))) std::tuple<at::Tensor, at::Tensor> tree_rows(
    const at::Tensor& codes, const at::Tensor& depths, const at::Tensor& position, std::int64_t first_id,
    std::int64_t last_position) {
  static const auto op =
      handle<std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                                std::int64_t, std::int64_t)>("lamplighter::tree_rows");
  return op.call(codes, depths, position, first_id, last_position);
}

__attribute__((visibility("default"))) at::Tensor commit_tokens(const CommittedTree& tree, Progress& state) {
  using T = const at::Tensor&;
  using M = at::Tensor&;
  static const auto op =
      handle<at::Tensor(T, T, T, T, T, T, T, T, M, M, M, M, M, M, M, M, M, M, std::int64_t, std::int64_t,
                        std::int64_t, std::int64_t)>("lamplighter::commit_tokens");
  return op.call(tree.tokens, tree.depths, tree.path, tree.count, tree.token, tree.kept_rows, tree.kept_count,
                 state.image, state.steps, state.codes, state.root, state.bad, state.lengths, state.position,
                 state.report, state.fresh, state.fresh_ids, state.fresh_positions, state.total,
                 state.last_position, state.first_image_id, state.row_end);
}

__attribute__((visibility("default"))) void fresh_rows(const KeptTree& kept, const Progress& state,
                                                       const FreshRows& fresh) {
  using T = const at::Tensor&;
  using M = at::Tensor&;
  static const auto op = handle<void(T, T, T, T, T, T, T, T, T, M, M, M, M, std::int64_t, std::int64_t,
                                     std::int64_t, std::int64_t)>("lamplighter::fresh_rows");
  at::Tensor count = fresh.count, ids = fresh.ids, positions = fresh.positions, features = fresh.features;
  op.call(kept.tokens, kept.path, kept.count, kept.token, kept.kept_rows, kept.kept_count, kept.features,
          state.steps, state.position, count, ids, positions, features, state.total, state.last_position,
          state.first_image_id, state.row_end);
}

__attribute__((visibility("default"))) VerifyResult verify_tree(const DraftedTree& tree,
                                                                const VerifyOptions& options) {
  using T = const at::Tensor&;
  using Results = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
  static const auto op =
      handle<Results(T, T, T, T, T, T, T, T, c10::string_view, c10::string_view, bool, std::int64_t, T,
                     std::int64_t, std::int64_t, const Optional&, const Optional&, const Optional&)>(
          "lamplighter::verify_tree");
  const auto or_empty = [&](const at::Tensor& tensor, at::ScalarType dtype) {
    return tensor.defined() ? tensor : at::empty({0}, tree.uniforms.options().dtype(dtype));
  };
  const at::Tensor& target = tree.target.values;
  const at::Tensor draft = tree.draft.defined()
                               ? tree.draft.values
                               : at::empty({tree.tokens.size(0), 0, target.size(2)}, tree.uniforms.options());
  auto [path, count, token, final, status] = op.call(
      target, draft, tree.tokens, tree.parents, tree.draft_rows, tree.uniforms, tree.temperature,
      or_empty(options.neighbours, at::kInt), options.rule, options.residual, options.sampled, options.k,
      or_empty(options.bounds, at::kFloat), options.first_image_id, tree.depth, optional(options.syntax_ids),
      optional(tree.target.statistics), optional(tree.draft.statistics));
  return {path, count, token, final, status};
}

__attribute__((visibility("default"))) std::tuple<at::Tensor, at::Tensor, at::Tensor> expand_dynamic(
    const Distributions& rows, const at::Tensor& scores, std::int64_t k) {
  static const auto op = handle<std::tuple<at::Tensor, at::Tensor, at::Tensor>(
      const at::Tensor&, const at::Tensor&, std::int64_t, const Optional&)>("lamplighter::expand_dynamic");
  return op.call(rows.values, scores, k, optional(rows.statistics));
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
  for (const char* name :
       {"rms_norm",         "add_rms_norm",   "silu_mul",         "norm_heads",     "pack_linear",
        "pack_linear_int8", "linear",         "attend",           "compact_cache",  "tree_rows",
        "commit_tokens",    "uniforms",       "guide_and_filter", "probabilities",  "draw",
        "draw_children",    "draft_children", "expand_dynamic",   "rerank_dynamic", "verify_tree"}) {
    if (!c10::Dispatcher::singleton().findSchema({std::string("lamplighter::") + name, ""})) {
      missing += (missing.empty() ? "" : ", ") + std::string(name);
    }
  }
  return missing;
}

}  // namespace lamplighter::ops
