#pragma once

#include "kernels/judge/args.h"
#include "kernels/window/window.h"

// Operator arguments checked and turned into a parameter block, for every device. The results stay to be set.
namespace lamplighter {

inline JudgeArgs window_judge_args(const char* op, const ops::ScoredTree& tree,
                                   const ops::JudgeOptions& options) {
  JudgeArgs args = judge_args(tree, options);
  TORCH_CHECK(args.draft.statistics == nullptr, op, ": draft is logits, expected probabilities");
  return args;
}

// tree: a chain whose draft is probabilities, with uniforms [I, >= 2 N]; count int64 [I].
inline RenewWindowArgs renew_window_args(const ops::ScoredTree& tree, const at::Tensor& count, bool keep) {
  constexpr const char* kOp = "renew_window";
  RenewWindowArgs args{};
  args.judge = window_judge_args(kOp, tree, {});
  TORCH_CHECK(args.judge.uniform_count >= 2 * args.judge.nodes, kOp, ": uniforms have shape ",
              tree.uniforms.sizes(), ", expected two for each of ", args.judge.nodes, " nodes");
  check_tensor(kOp, "count", count, at::kLong, tree.target.values.device());
  check_shape(kOp, "count", count, {args.judge.images});
  args.count = count.const_data_ptr<int64_t>();
  args.keep = keep;
  return args;
}

// tree: draft is probabilities; nodes int64 [I, L]; draws fp32 [I, L, K].
inline RenewFanArgs renew_fan_args(const ops::ScoredTree& tree, const at::Tensor& nodes,
                                   const at::Tensor& draws) {
  constexpr const char* kOp = "renew_fan";
  const at::Device device = tree.target.values.device();
  ops::JudgeOptions options;
  options.rule = Rule::official_pac;
  RenewFanArgs args{};
  args.judge = window_judge_args(kOp, tree, options);
  check_tensor(kOp, "nodes", nodes, at::kLong, device);
  check_shape(kOp, "nodes", nodes, {args.judge.images, kAny});
  check_tensor(kOp, "draws", draws, at::kFloat, device);
  check_shape(kOp, "draws", draws, {args.judge.images, nodes.size(1), kAny});
  args.nodes = nodes.const_data_ptr<int64_t>();
  args.draws = draws.const_data_ptr<float>();
  args.slots = nodes.size(1);
  args.count = draws.size(2);
  return args;
}

// Shapes and meanings: ops::Guesses.
inline FillWindowArgs fill_window_args(const at::Tensor& tokens, at::Tensor& rows,
                                       const ops::Guesses& guesses) {
  constexpr const char* kOp = "fill_window";
  const at::Device device = tokens.device();
  FillWindowArgs args{};
  check_tensor(kOp, "tokens", tokens, at::kLong, device);
  check_shape(kOp, "tokens", tokens, {kAny, kAny});
  args.images = tokens.size(0);
  args.slots = tokens.size(1);
  check_tensor(kOp, "rows", rows, at::kFloat, device);
  check_shape(kOp, "rows", rows, {args.images, args.slots, kAny});
  args.vocabulary = rows.size(2);
  check_tensor(kOp, "uniforms", guesses.uniforms, at::kFloat, device);
  check_shape(kOp, "uniforms", guesses.uniforms, {args.images, args.slots});
  const auto each = [&](const char* name, const at::Tensor& tensor) {
    check_tensor(kOp, name, tensor, at::kLong, device);
    check_shape(kOp, name, tensor, {args.images});
    return tensor.const_data_ptr<int64_t>();
  };
  args.steps = each("steps", guesses.steps);
  args.left = each("left", guesses.left);
  check_tensor(kOp, "drawn", guesses.drawn, at::kLong, device);
  check_shape(kOp, "drawn", guesses.drawn, {args.images, kAny});
  args.drawn_columns = guesses.drawn.size(1);
  TORCH_CHECK(guesses.columns > 0, kOp, ": columns is ", guesses.columns, ", expected at least 1");
  TORCH_CHECK(guesses.codes > 0 && guesses.codes <= args.vocabulary, kOp, ": codes is ", guesses.codes,
              ", expected 1..", args.vocabulary);
  args.tokens = tokens.const_data_ptr<int64_t>();
  args.uniforms = guesses.uniforms.const_data_ptr<float>();
  args.drawn = guesses.drawn.const_data_ptr<int64_t>();
  args.rows = rows.mutable_data_ptr<float>();
  args.columns = guesses.columns;
  args.codes = guesses.codes;
  args.fill = guesses.fill;
  return args;
}

inline WindowFill window_fill(int64_t value) {
  const auto last = static_cast<int64_t>(kWindowFills.size()) - 1;
  TORCH_CHECK(value >= 0 && value <= last, "fill_window: fill is ", value, ", expected 0..", last);
  return static_cast<WindowFill>(value);
}

}  // namespace lamplighter
