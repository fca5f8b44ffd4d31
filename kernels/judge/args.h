#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "kernels/judge/judge.h"
#include "kernels/ops.h"
#include "kernels/sampling/distribution_args.h"

// Operator arguments checked and turned into a parameter block, for every device. The results stay to be set.
namespace lamplighter {

inline int64_t judge_choice(const char* name, int64_t value, int64_t last) {
  TORCH_CHECK(value >= 0 && value <= last, "judge_tree: ", name, " is ", value, ", expected 0..", last);
  return value;
}

inline Rule judge_rule(int64_t value) {
  return static_cast<Rule>(judge_choice("rule", value, static_cast<int64_t>(Rule::official_pac)));
}

inline Residual judge_residual(int64_t value) {
  constexpr auto kLast = static_cast<int64_t>(Residual::official_lumina_dynamic);
  return static_cast<Residual>(judge_choice("residual", value, kLast));
}

inline void set_judge_tensors(JudgeArgs& args, const ops::ScoredTree& t) {
  constexpr const char* kOp = "judge_tree";
  const at::Device device = t.target.values.device();
  const CheckedRows target = distribution_rows(kOp, "target", t.target.values, t.target.statistics);
  const int64_t images = target.images;
  const int64_t nodes = target.rows.rows;
  TORCH_CHECK(nodes >= 1 && nodes <= kJudgeNodes, kOp, ": target has shape ", t.target.values.sizes(),
              " with ", nodes, " nodes, expected 1..", kJudgeNodes);
  check_device(kOp, "draft", t.draft.values, device);
  const CheckedRows draft = distribution_rows(kOp, "draft", t.draft.values, t.draft.statistics);
  TORCH_CHECK(draft.images == images && draft.rows.vocabulary == target.rows.vocabulary, kOp,
              ": draft has shape ", t.draft.values.sizes(), ", expected ", images, " images and ",
              target.rows.vocabulary, " tokens");
  check_tensor(kOp, "tokens", t.tokens, at::kLong, device);
  check_shape(kOp, "tokens", t.tokens, {images, nodes});
  check_tensor(kOp, "parents", t.parents, at::kLong, device);
  check_shape(kOp, "parents", t.parents,
              {t.parents.dim() == 2 && t.parents.size(0) == 1 ? 1 : images, nodes});
  check_tensor(kOp, "draft_rows", t.draft_rows, at::kLong, device);
  check_shape(kOp, "draft_rows", t.draft_rows,
              {t.draft_rows.dim() == 2 && t.draft_rows.size(0) == 1 ? 1 : images, nodes});
  check_tensor(kOp, "uniforms", t.uniforms, at::kFloat, device);
  check_shape(kOp, "uniforms", t.uniforms, {images, kAny});
  TORCH_CHECK(t.uniforms.size(1) >= nodes, kOp, ": uniforms have shape ", t.uniforms.sizes(),
              ", expected at least ", nodes, " an image, one for each node");
  check_tensor(kOp, "temperature", t.temperature, at::kFloat, device);
  check_shape(kOp, "temperature", t.temperature, {images});
  args.target = target.rows;
  args.draft = draft.rows;
  args.images = images;
  args.nodes = nodes;
  args.vocabulary = target.rows.vocabulary;
  args.uniform_count = t.uniforms.size(1);
  args.parents_stride = t.parents.size(0) == images ? nodes : 0;
  args.draft_rows_stride = t.draft_rows.size(0) == images ? nodes : 0;
  args.tokens = t.tokens.const_data_ptr<int64_t>();
  args.parents = t.parents.const_data_ptr<int64_t>();
  args.draft_rows = t.draft_rows.const_data_ptr<int64_t>();
  args.uniforms = t.uniforms.const_data_ptr<float>();
  args.temperature = t.temperature.const_data_ptr<float>();
}

// int32 [codes, K]; empty or undefined: none.
inline void set_judge_neighbours(JudgeArgs& args, const at::Tensor& neighbours, at::Device device) {
  if (!neighbours.defined()) return;
  check_tensor("judge_tree", "neighbours", neighbours, at::kInt, device);
  if (neighbours.numel() == 0) return;
  check_shape("judge_tree", "neighbours", neighbours, {kAny, kAny});
  args.codes = neighbours.size(0);
  args.neighbour_count = neighbours.size(1);
  args.neighbours = neighbours.const_data_ptr<int32_t>();
}

// fp32 [B], or undefined.
inline void set_judge_bounds(JudgeArgs& args, const at::Tensor& bounds, at::Device device) {
  const bool weighs = args.rule == Rule::cool || args.rule == Rule::lenient;
  const bool relaxed = args.rule == Rule::lantern || args.rule == Rule::lantern_plus || weighs;
  if (bounds.defined()) {
    check_tensor("judge_tree", "bounds", bounds, at::kFloat, device);
    check_shape("judge_tree", "bounds", bounds, {kAny});
    args.bounds = bounds.const_data_ptr<float>();
    args.bound_count = bounds.size(0);
  }
  TORCH_CHECK(!relaxed || args.bound_count > 0, "judge_tree: bounds are empty, expected at least one ",
              args.rule == Rule::lantern ? "delta"
              : weighs                   ? "weight"
                                         : "lambda");
  TORCH_CHECK((args.rule != Rule::typical && args.rule != Rule::grouped) || args.bound_count == 2,
              "judge_tree: bounds have ", args.bound_count,
              " entries, expected 2: epsilon and alpha, or gap and distance");
}

// fp32 [codes, width], or undefined.
inline void set_judge_codebook(JudgeArgs& args, const at::Tensor& codebook, at::Device device) {
  if (!codebook.defined()) return;
  check_tensor("judge_tree", "codebook", codebook, at::kFloat, device);
  check_shape("judge_tree", "codebook", codebook, {kAny, kAny});
  args.codebook = codebook.const_data_ptr<float>();
  args.code_rows = codebook.size(0);
  args.code_width = codebook.size(1);
}

// int64 [any count], or undefined.
inline void set_judge_syntax(JudgeArgs& args, const at::Tensor& syntax_ids, at::Device device) {
  if (!syntax_ids.defined()) return;
  check_tensor("judge_tree", "syntax_ids", syntax_ids, at::kLong, device);
  check_shape("judge_tree", "syntax_ids", syntax_ids, {kAny});
  args.syntax_ids = syntax_ids.const_data_ptr<int64_t>();
  args.syntax_count = syntax_ids.size(0);
}

// Shapes: ops::ScoredTree and ops::JudgeOptions; tree.draft may have no rows, but is defined.
inline JudgeArgs judge_args(const ops::ScoredTree& tree, const ops::JudgeOptions& options) {
  constexpr const char* kOp = "judge_tree";
  const at::Device device = tree.target.values.device();
  JudgeArgs args{};
  set_judge_tensors(args, tree);
  args.rule = options.rule;
  args.residual = options.residual;
  args.sampled = options.sampled;
  args.paths = args.rule == Rule::traversal || args.rule == Rule::block;
  TORCH_CHECK(!args.paths || args.residual == Residual::paper || args.residual == Residual::optimal, kOp,
              ": rule ", static_cast<int64_t>(args.rule), " judges paths and came with residual ",
              static_cast<int64_t>(args.residual), ", expected 0, that of the papers");
  const bool published = args.residual != Residual::paper && args.residual != Residual::optimal;
  TORCH_CHECK(!published || args.rule < Rule::cool, kOp, ": rule ", static_cast<int64_t>(args.rule),
              " came with residual ", static_cast<int64_t>(args.residual), ", expected 0");
  TORCH_CHECK(tree.depth >= 0 && tree.depth < kJudgeNodes, kOp, ": depth is ", tree.depth, ", expected 0..",
              kJudgeNodes - 1);
  args.depth = tree.depth;
  args.levels = args.paths ? args.depth + 1 : 1;
  set_judge_neighbours(args, options.neighbours, device);
  set_judge_bounds(args, options.bounds, device);
  set_judge_syntax(args, options.syntax_ids, device);
  set_judge_codebook(args, options.codebook, device);
  TORCH_CHECK(options.k >= 0, kOp, ": k is ", options.k, ", expected 0 or more neighbours");
  args.k = std::min(options.k, args.neighbour_count);
  args.first_image_id = options.first_image_id;
  TORCH_CHECK(args.first_image_id >= 0 && args.first_image_id <= args.vocabulary - args.codes, kOp,
              ": first_image_id is ", args.first_image_id, ", expected 0..", args.vocabulary - args.codes,
              " for ", args.codes, " codes among ", args.vocabulary, " ids");
  return args;
}

}  // namespace lamplighter
