#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "kernels/trees/children.h"
#include "kernels/trees/dynamic.h"

// Result tensors of the operators that draft trees, for every device; parameter blocks get their addresses.
namespace lamplighter {

struct ChildrenResults {
  at::Tensor tokens, conditional;

  ChildrenResults(DrawChildrenArgs& args, const at::Tensor& seeds)
      : tokens(at::empty({args.images, args.rows.rows, args.count}, seeds.options())),
        conditional(at::empty(tokens.sizes(), seeds.options().dtype(at::kFloat))) {
    args.tokens = tokens.mutable_data_ptr<int64_t>();
    args.conditional = conditional.mutable_data_ptr<float>();
  }
};

struct ExpandResults {
  at::Tensor tokens, pool_scores, frontier;

  ExpandResults(ExpandArgs& args, const at::Tensor& scores) {
    const auto integers = scores.options().dtype(at::kLong);
    tokens = at::empty({args.images, args.rows.rows * args.k}, integers);
    pool_scores = at::empty({args.images, args.rows.rows * args.k}, scores.options());
    frontier = at::empty({args.images, args.k}, integers);
    args.tokens = tokens.mutable_data_ptr<int64_t>();
    args.pool_scores = pool_scores.mutable_data_ptr<float>();
    args.frontier = frontier.mutable_data_ptr<int64_t>();
  }
};

struct RerankResults {
  at::Tensor tokens, parents, depths, mask, pool_index;

  RerankResults(RerankArgs& args, const at::Tensor& pool_tokens) {
    const auto options = pool_tokens.options();
    tokens = at::empty({args.images, args.nodes + 1}, options);
    parents = at::empty({args.images, args.nodes + 1}, options);
    depths = at::empty({args.images, args.nodes + 1}, options);
    mask = at::empty({args.images, args.nodes + 1, 1}, options);
    pool_index = at::empty({args.images, args.nodes}, options);
    args.tokens = tokens.mutable_data_ptr<int64_t>();
    args.parents = parents.mutable_data_ptr<int64_t>();
    args.depths = depths.mutable_data_ptr<int64_t>();
    args.mask = mask.mutable_data_ptr<int64_t>();
    args.pool_index = pool_index.mutable_data_ptr<int64_t>();
  }
};

}  // namespace lamplighter
