#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/common/checks.h"
#include "kernels/sampling/distribution.h"

// Shape functions of all operators: what tracing and exporting call in place of the kernels. Sizes may be
// symbolic, so only ranks and dtypes are checked here. Results are contiguous, as those of the kernels are.
namespace lamplighter {
namespace {

using SymSizes = std::vector<c10::SymInt>;

void check_rank(const char* op, const char* name, const at::Tensor& tensor, int64_t least) {
  TORCH_CHECK(tensor.dim() >= least, op, ": ", name, " has ", tensor.dim(), " dimensions, expected at least ",
              least);
}

void check_same_dtype(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& model) {
  check_dtype(op, name, tensor, model.scalar_type());
}

at::Tensor like(const at::Tensor& model, const SymSizes& sizes) {
  return at::empty_symint(sizes, model.options());
}

at::Tensor with_last(const at::Tensor& model, c10::SymInt last) {
  SymSizes sizes = model.sym_sizes().vec();
  sizes.back() = std::move(last);
  return like(model, sizes);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double /*eps*/) {
  check_rank("rms_norm", "x", x, 1);
  check_same_dtype("rms_norm", "weight", weight, x);
  return like(x, x.sym_sizes().vec());
}

at::Tensor add_rms_norm(at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight, double /*eps*/) {
  check_rank("add_rms_norm", "x", x, 1);
  check_same_dtype("add_rms_norm", "residual", residual, x);
  check_same_dtype("add_rms_norm", "weight", weight, x);
  return like(x, x.sym_sizes().vec());
}

at::Tensor silu_mul(const at::Tensor& gate_up) {
  check_rank("silu_mul", "gate_up", gate_up, 1);
  return with_last(gate_up, gate_up.sym_size(-1) / 2);
}

void norm_heads(at::Tensor& values, const at::Tensor& weight, const at::Tensor& bias, double /*eps*/) {
  check_rank("norm_heads", "values", values, 1);
  check_rank("norm_heads", "weight", weight, 2);
  check_rank("norm_heads", "bias", bias, 2);
  check_same_dtype("norm_heads", "weight", weight, values);
  check_same_dtype("norm_heads", "bias", bias, values);
}

// Of the CPU's packed layout; CUDA keeps the weight as it is, but packing comes before any tracing.
at::Tensor pack_linear(const at::Tensor& weight) {
  check_rank("pack_linear", "weight", weight, 2);
  return like(weight, {(weight.sym_size(0) + 15) / 16, weight.sym_size(1), 16});
}

at::Tensor pack_linear_int8(const at::Tensor& weight) {
  check_rank("pack_linear_int8", "weight", weight, 2);
  const c10::SymInt padded = (weight.sym_size(1) + 1) / 2 * 2;
  return at::empty_symint({(weight.sym_size(0) + 15) / 16, padded + 4, 16},
                          weight.options().dtype(at::kChar));
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, int64_t out_features) {
  check_rank("linear", "x", x, 1);
  check_rank("linear", "weight", weight, 2);
  if (weight.scalar_type() == at::kChar) {
    check_dtype("linear", "x", x, at::kBFloat16);
  } else {
    check_same_dtype("linear", "weight", weight, x);
  }
  return with_last(x, out_features);
}

at::Tensor attend(const at::Tensor& qkv, at::Tensor& cache, int64_t /*layer*/, const at::Tensor& positions,
                  const at::Tensor& lengths, const at::Tensor& tree_mask, const at::Tensor& rotary,
                  int64_t heads, int64_t /*kv_heads*/, double /*scale*/) {
  check_rank("attend", "qkv", qkv, 3);
  check_rank("attend", "cache", cache, 6);
  check_same_dtype("attend", "cache", cache, qkv);
  check_dtype("attend", "positions", positions, at::kLong);
  check_dtype("attend", "lengths", lengths, at::kLong);
  check_dtype("attend", "tree_mask", tree_mask, at::kLong);
  check_dtype("attend", "rotary", rotary, at::kFloat);
  return with_last(qkv, cache.sym_size(5) * heads);
}

void compact_cache(at::Tensor& cache, const at::Tensor& lengths, const at::Tensor& path,
                   const at::Tensor& count) {
  check_rank("compact_cache", "cache", cache, 6);
  check_dtype("compact_cache", "lengths", lengths, at::kLong);
  check_rank("compact_cache", "path", path, 2);
  check_dtype("compact_cache", "path", path, at::kLong);
  check_dtype("compact_cache", "count", count, at::kLong);
}

at::Tensor uniforms(const at::Tensor& seeds, const at::Tensor& steps, int64_t /*purpose*/, int64_t count) {
  check_rank("uniforms", "seeds", seeds, 1);
  check_dtype("uniforms", "seeds", seeds, at::kLong);
  check_dtype("uniforms", "steps", steps, at::kLong);
  return at::empty_symint({seeds.sym_size(0), count}, seeds.options().dtype(at::kFloat));
}

at::Tensor guide_and_filter(const at::Tensor& logits, const at::Tensor& guidance,
                            const at::Tensor& temperature, const at::Tensor& top_k, const at::Tensor& top_p,
                            c10::string_view /*order*/) {
  check_rank("guide_and_filter", "logits", logits, 3);
  check_rank("guide_and_filter", "guidance", guidance, 1);
  check_dtype("guide_and_filter", "guidance", guidance, at::kFloat);
  check_dtype("guide_and_filter", "temperature", temperature, at::kFloat);
  check_dtype("guide_and_filter", "top_k", top_k, at::kLong);
  check_dtype("guide_and_filter", "top_p", top_p, at::kFloat);
  return at::empty_symint({temperature.sym_size(0), logits.sym_size(1), kRowStatistics},
                          logits.options().dtype(at::kFloat));
}

// Returns the number of images.
c10::SymInt check_distributions(const char* op, const char* name, const at::Tensor& values,
                                const std::optional<at::Tensor>& statistics) {
  check_rank(op, name, values, 3);
  check_dtype(op, statistics ? "statistics" : name, statistics ? *statistics : values, at::kFloat);
  return (statistics ? *statistics : values).sym_size(0);
}

at::Tensor probabilities(const at::Tensor& logits, const at::Tensor& statistics) {
  return at::empty_symint({check_distributions("probabilities", "logits", logits, statistics),
                           logits.sym_size(1), logits.sym_size(2)},
                          statistics.options());
}

at::Tensor draw(const at::Tensor& values, const at::Tensor& uniforms, const at::Tensor& temperature,
                const std::optional<at::Tensor>& statistics) {
  const c10::SymInt images = check_distributions("draw", "values", values, statistics);
  check_dtype("draw", "uniforms", uniforms, at::kFloat);
  check_dtype("draw", "temperature", temperature, at::kFloat);
  return at::empty_symint({images, values.sym_size(1)}, uniforms.options().dtype(at::kLong));
}

std::tuple<at::Tensor, at::Tensor> draw_children(const at::Tensor& values, const at::Tensor& seeds,
                                                 const at::Tensor& steps, const at::Tensor& nodes,
                                                 int64_t count, bool /*sampled*/,
                                                 const std::optional<at::Tensor>& statistics) {
  const c10::SymInt images = check_distributions("draw_children", "values", values, statistics);
  check_dtype("draw_children", "seeds", seeds, at::kLong);
  check_dtype("draw_children", "steps", steps, at::kLong);
  check_dtype("draw_children", "nodes", nodes, at::kLong);
  const SymSizes sizes = {images, values.sym_size(1), count};
  return {like(seeds, sizes), at::empty_symint(sizes, seeds.options().dtype(at::kFloat))};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> draft_children(
    const at::Tensor& logits, const at::Tensor& guidance, const at::Tensor& temperature,
    const at::Tensor& top_k, const at::Tensor& top_p, c10::string_view order, const at::Tensor& seeds,
    const at::Tensor& steps, const at::Tensor& nodes, int64_t count, bool sampled) {
  const at::Tensor statistics = guide_and_filter(logits, guidance, temperature, top_k, top_p, order);
  auto [tokens, conditional] = draw_children(logits, seeds, steps, nodes, count, sampled, statistics);
  return {statistics, tokens, conditional};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> verify_tree(
    const at::Tensor& target, const at::Tensor& draft, const at::Tensor& tokens, const at::Tensor& parents,
    const at::Tensor& draft_rows, const at::Tensor& uniforms, const at::Tensor& temperature,
    const at::Tensor& neighbours, c10::string_view /*rule*/, c10::string_view /*residual*/, bool /*sampled*/,
    int64_t /*k*/, const at::Tensor& bounds, int64_t /*first_image_id*/, int64_t depth,
    const std::optional<at::Tensor>& syntax_ids, const std::optional<at::Tensor>& target_statistics,
    const std::optional<at::Tensor>& draft_statistics) {
  const c10::SymInt images = check_distributions("verify_tree", "target", target, target_statistics);
  check_distributions("verify_tree", "draft", draft, draft_statistics);
  check_dtype("verify_tree", "tokens", tokens, at::kLong);
  check_dtype("verify_tree", "parents", parents, at::kLong);
  check_dtype("verify_tree", "draft_rows", draft_rows, at::kLong);
  check_dtype("verify_tree", "uniforms", uniforms, at::kFloat);
  check_dtype("verify_tree", "temperature", temperature, at::kFloat);
  check_dtype("verify_tree", "neighbours", neighbours, at::kInt);
  check_dtype("verify_tree", "bounds", bounds, at::kFloat);
  if (syntax_ids) check_dtype("verify_tree", "syntax_ids", *syntax_ids, at::kLong);
  return {like(tokens, {images, depth + 1}), like(tokens, {images}), like(tokens, {images}),
          like(uniforms, {images, target.sym_size(2)}), like(tokens, {images})};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> expand_dynamic(const at::Tensor& values,
                                                              const at::Tensor& scores, int64_t k,
                                                              const std::optional<at::Tensor>& statistics) {
  const c10::SymInt images = check_distributions("expand_dynamic", "values", values, statistics);
  check_dtype("expand_dynamic", "scores", scores, at::kFloat);
  const c10::SymInt pool = values.sym_size(1) * k;
  const auto integers = scores.options().dtype(at::kLong);
  return {at::empty_symint({images, pool}, integers), like(scores, {images, pool}),
          at::empty_symint({images, k}, integers)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> rerank_dynamic(
    const at::Tensor& tokens, const at::Tensor& scores, const at::Tensor& frontiers, int64_t nodes) {
  check_rank("rerank_dynamic", "tokens", tokens, 2);
  check_dtype("rerank_dynamic", "tokens", tokens, at::kLong);
  check_dtype("rerank_dynamic", "scores", scores, at::kFloat);
  check_dtype("rerank_dynamic", "frontiers", frontiers, at::kLong);
  const c10::SymInt images = tokens.sym_size(0);
  const SymSizes tree = {images, nodes + 1};
  return {like(tokens, tree), like(tokens, tree), like(tokens, tree), like(tokens, {images, nodes + 1, 1}),
          like(tokens, {images, nodes})};
}

std::tuple<at::Tensor, at::Tensor> tree_rows(const at::Tensor& codes, const at::Tensor& /*depths*/,
                                             const at::Tensor& position, int64_t /*first_id*/,
                                             int64_t /*last_position*/) {
  check_rank("tree_rows", "codes", codes, 2);
  check_same_dtype("tree_rows", "position", position, codes);
  const SymSizes sizes = {position.sym_size(0), codes.sym_size(1)};
  return {like(codes, sizes), like(codes, sizes)};
}

using Mutated = at::Tensor&;
at::Tensor commit_tokens(const at::Tensor& tokens, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                         const at::Tensor&, const at::Tensor& kept_rows, const at::Tensor&, const at::Tensor&,
                         Mutated, Mutated, Mutated, Mutated, Mutated lengths, Mutated, Mutated, Mutated,
                         Mutated, Mutated, int64_t, int64_t, int64_t, int64_t) {
  check_rank("commit_tokens", "kept_rows", kept_rows, 2);
  check_same_dtype("commit_tokens", "kept_rows", kept_rows, tokens);
  return like(kept_rows, {lengths.sym_size(0), kept_rows.sym_size(1)});
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, Meta, m) {
  m.impl("rms_norm", &rms_norm);
  m.impl("add_rms_norm", &add_rms_norm);
  m.impl("silu_mul", &silu_mul);
  m.impl("norm_heads", &norm_heads);
  m.impl("pack_linear", &pack_linear);
  m.impl("pack_linear_int8", &pack_linear_int8);
  m.impl("linear", &linear);
  m.impl("attend", &attend);
  m.impl("compact_cache", &compact_cache);
  m.impl("tree_rows", &tree_rows);
  m.impl("commit_tokens", &commit_tokens);
  m.impl("uniforms", &uniforms);
  m.impl("guide_and_filter", &guide_and_filter);
  m.impl("probabilities", &probabilities);
  m.impl("draw", &draw);
  m.impl("draw_children", &draw_children);
  m.impl("draft_children", &draft_children);
  m.impl("expand_dynamic", &expand_dynamic);
  m.impl("rerank_dynamic", &rerank_dynamic);
  m.impl("verify_tree", &verify_tree);
}

}  // namespace lamplighter
