#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "kernels/sampling/distribution_args.h"
#include "kernels/trees/dynamic.h"

// Operator arguments checked and turned into parameter blocks, for every device. The results stay to be set.
namespace lamplighter {

// values and statistics of distributions [I, W, V], scores fp32 [I, W].
inline ExpandArgs expand_args(const at::Tensor& values, const at::Tensor& scores, int64_t k,
                              const at::Tensor& statistics) {
  constexpr const char* kOp = "expand_dynamic";
  const CheckedRows checked = distribution_rows(kOp, "values", values, statistics);
  check_tensor(kOp, "scores", scores, at::kFloat, values.device());
  check_shape(kOp, "scores", scores, {checked.images, checked.rows.rows});
  const int64_t most = std::min<int64_t>(kMostDynamicChildren, checked.rows.vocabulary);
  TORCH_CHECK(k >= 1 && k <= most, kOp, ": k is ", k, ", expected 1..", most);
  TORCH_CHECK(checked.rows.rows >= 1, kOp, ": values have shape ", values.sizes(),
              ", expected at least one row per image");
  ExpandArgs args{};
  args.rows = checked.rows;
  args.scores = scores.const_data_ptr<float>();
  args.images = checked.images;
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
