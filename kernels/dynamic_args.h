#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "kernels/checks.h"
#include "kernels/dynamic.h"

// Operator arguments checked and turned into parameter blocks, for every device. The results stay to be set.
namespace lamplighter {

// probabilities fp32 [I, W, V], scores fp32 [I, W].
inline ExpandArgs expand_args(const at::Tensor& probabilities, const at::Tensor& scores, int64_t k) {
  constexpr const char* kOp = "expand_dynamic";
  check_tensor(kOp, "probabilities", probabilities, at::kFloat, probabilities.device());
  check_shape(kOp, "probabilities", probabilities, {kAny, kAny, kAny});
  check_vocabulary(kOp, probabilities, probabilities.size(2));
  check_tensor(kOp, "scores", scores, at::kFloat, probabilities.device());
  check_shape(kOp, "scores", scores, {probabilities.size(0), probabilities.size(1)});
  const int64_t most = std::min<int64_t>(kMostDynamicChildren, probabilities.size(2));
  TORCH_CHECK(k >= 1 && k <= most, kOp, ": k is ", k, ", expected 1..", most);
  TORCH_CHECK(probabilities.size(1) >= 1, kOp, ": probabilities has shape ", probabilities.sizes(),
              ", expected at least one row per image");
  ExpandArgs args{};
  args.probabilities = probabilities.const_data_ptr<float>();
  args.scores = scores.const_data_ptr<float>();
  args.images = probabilities.size(0);
  args.width = probabilities.size(1);
  args.vocabulary = probabilities.size(2);
  args.k = k;
  return args;
}

// tokens int64 [I, P], scores fp32 [I, P], frontiers int64 [I, passes, k], P = k + passes * k * k.
inline RerankArgs rerank_args(const at::Tensor& tokens, const at::Tensor& scores, const at::Tensor& frontiers,
                              int64_t nodes) {
  constexpr const char* kOp = "rerank_dynamic";
  check_tensor(kOp, "tokens", tokens, at::kLong, tokens.device());
  check_tensor(kOp, "frontiers", frontiers, at::kLong, tokens.device());
  check_shape(kOp, "frontiers", frontiers, {kAny, kAny, kAny});
  RerankArgs args{};
  args.images = frontiers.size(0);
  args.passes = frontiers.size(1);
  args.k = frontiers.size(2);
  TORCH_CHECK(args.k >= 1 && args.k <= kMostDynamicChildren, kOp, ": frontiers has shape ", frontiers.sizes(),
              ", expected a last size of 1..", kMostDynamicChildren);
  args.pool = args.k + args.passes * args.k * args.k;
  check_shape(kOp, "tokens", tokens, {args.images, args.pool});
  check_tensor(kOp, "scores", scores, at::kFloat, tokens.device());
  check_shape(kOp, "scores", scores, {args.images, args.pool});
  const int64_t most = std::min<int64_t>(kMostDynamicNodes, args.pool);
  TORCH_CHECK(nodes >= 0 && nodes <= most, kOp, ": nodes is ", nodes, ", expected 0..", most);
  args.pool_tokens = tokens.const_data_ptr<int64_t>();
  args.scores = scores.const_data_ptr<float>();
  args.frontiers = frontiers.const_data_ptr<int64_t>();
  args.nodes = nodes;
  return args;
}

}  // namespace lamplighter
