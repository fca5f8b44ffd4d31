#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/string_view.h>

#include <algorithm>
#include <utility>

#include "kernels/judge/judge.h"
#include "kernels/sampling/distribution_args.h"

// Operator arguments checked and turned into a parameter block, for every device. The results stay to be set.
namespace lamplighter {

// The arguments of verify_tree that are tensors but for neighbours and bounds; shapes in kernels/ops.h.
struct VerifyTensors {
  const at::Tensor& target;
  const at::Tensor& target_statistics;  // undefined: probabilities
  const at::Tensor& draft;
  const at::Tensor& draft_statistics;
  const at::Tensor& tokens;
  const at::Tensor& parents;
  const at::Tensor& draft_rows;
  const at::Tensor& uniforms;
  const at::Tensor& temperature;
};

template <class Value, size_t kCount>
Value verify_choice(const char* name, c10::string_view text,
                    const std::pair<const char*, Value> (&choices)[kCount]) {
  std::string all;
  for (const auto& [choice, value] : choices) {
    if (text == choice) return value;
    all += (all.empty() ? "" : ", ") + std::string(choice);
  }
  TORCH_CHECK(false, "verify_tree: ", name, " is '", text, "', expected one of ", all);
}

inline Rule verify_rule(c10::string_view name) {
  static constexpr std::pair<const char*, Rule> kRules[] = {{"exact", Rule::exact},
                                                            {"lantern", Rule::lantern},
                                                            {"lantern++", Rule::lantern_plus},
                                                            {"traversal", Rule::traversal},
                                                            {"block", Rule::block}};
  return verify_choice("rule", name, kRules);
}

inline Residual verify_residual(c10::string_view name) {
  static constexpr std::pair<const char*, Residual> kResiduals[] = {
      {"paper", Residual::paper},
      {"optimal", Residual::optimal},
      {"official-static", Residual::official_static},
      {"official-dynamic", Residual::official_dynamic},
      {"official-lumina-static", Residual::official_lumina_static},
      {"official-lumina-dynamic", Residual::official_lumina_dynamic}};
  return verify_choice("residual", name, kResiduals);
}

inline void set_verify_tensors(VerifyArgs& args, const VerifyTensors& t) {
  constexpr const char* kOp = "verify_tree";
  const at::Device device = t.target.device();
  const CheckedRows target = distribution_rows(kOp, "target", t.target, t.target_statistics);
  const int64_t images = target.images;
  const int64_t nodes = target.rows.rows;
  TORCH_CHECK(nodes >= 1 && nodes <= kVerifyNodes, kOp, ": target has shape ", t.target.sizes(), " with ",
              nodes, " nodes, expected 1..", kVerifyNodes);
  check_device(kOp, "draft", t.draft, device);
  const CheckedRows draft = distribution_rows(kOp, "draft", t.draft, t.draft_statistics);
  TORCH_CHECK(draft.images == images && draft.rows.vocabulary == target.rows.vocabulary, kOp,
              ": draft has shape ", t.draft.sizes(), ", expected ", images, " images and ",
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

// int64 [any count], or undefined.
inline void set_verify_syntax(VerifyArgs& args, const at::Tensor& syntax_ids, at::Device device) {
  if (!syntax_ids.defined()) return;
  check_tensor("verify_tree", "syntax_ids", syntax_ids, at::kLong, device);
  check_shape("verify_tree", "syntax_ids", syntax_ids, {kAny});
  args.syntax_ids = syntax_ids.const_data_ptr<int64_t>();
  args.syntax_count = syntax_ids.size(0);
}

// neighbours: int32 [codes, K], or empty; bounds: fp32 [B].
inline void set_verify_relaxation(VerifyArgs& args, const at::Tensor& neighbours, const at::Tensor& bounds,
                                  int64_t k, int64_t first_image_id, at::Device device) {
  constexpr const char* kOp = "verify_tree";
  check_tensor(kOp, "neighbours", neighbours, at::kInt, device);
  if (neighbours.numel() > 0) {
    check_shape(kOp, "neighbours", neighbours, {kAny, kAny});
    args.codes = neighbours.size(0);
    args.neighbour_count = neighbours.size(1);
    args.neighbours = neighbours.const_data_ptr<int32_t>();
  }
  check_tensor(kOp, "bounds", bounds, at::kFloat, device);
  check_shape(kOp, "bounds", bounds, {kAny});
  const bool relaxed = args.rule == Rule::lantern || args.rule == Rule::lantern_plus;
  TORCH_CHECK(!relaxed || bounds.size(0) > 0, kOp, ": bounds are empty, expected at least one ",
              args.rule == Rule::lantern ? "delta" : "lambda");
  TORCH_CHECK(k >= 0, kOp, ": k is ", k, ", expected 0 or more neighbours");
  TORCH_CHECK(first_image_id >= 0 && first_image_id <= args.vocabulary - args.codes, kOp,
              ": first_image_id is ", first_image_id, ", expected 0..", args.vocabulary - args.codes, " for ",
              args.codes, " codes among ", args.vocabulary, " ids");
  args.bounds = bounds.const_data_ptr<float>();
  args.bound_count = bounds.size(0);
  args.k = std::min(k, args.neighbour_count);
  args.first_image_id = first_image_id;
}

inline VerifyArgs verify_args(const VerifyTensors& t, const at::Tensor& neighbours, c10::string_view rule,
                              c10::string_view residual, bool sampled, int64_t k, const at::Tensor& bounds,
                              int64_t first_image_id, int64_t depth, const at::Tensor& syntax_ids) {
  constexpr const char* kOp = "verify_tree";
  VerifyArgs args{};
  set_verify_tensors(args, t);
  args.rule = verify_rule(rule);
  args.residual = verify_residual(residual);
  args.sampled = sampled;
  args.paths = args.rule == Rule::traversal || args.rule == Rule::block;
  TORCH_CHECK(!args.paths || residual == "paper" || residual == "optimal", kOp, ": rule '", rule,
              "' came with residual '", residual, "', expected paper");
  TORCH_CHECK(depth >= 0 && depth < kVerifyNodes, kOp, ": depth is ", depth, ", expected 0..",
              kVerifyNodes - 1);
  args.depth = depth;
  args.levels = args.paths ? depth + 1 : 1;
  set_verify_relaxation(args, neighbours, bounds, k, first_image_id, t.target.device());
  set_verify_syntax(args, syntax_ids, t.target.device());
  return args;
}

}  // namespace lamplighter
