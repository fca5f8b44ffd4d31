#include "draft/models.h"

#include <ATen/ops/tensor.h>

namespace lamplighter {

Target::Output Models::run(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& tree_mask,
                           const at::Tensor& lengths, const at::Tensor& cache) const {
  if (drafter == nullptr || drafter->entry().feature_layers.empty())
    return target->forward(x, positions, tree_mask, lengths, cache);
  const at::Tensor layers = at::tensor(drafter->entry().feature_layers, at::kLong);
  return target->forward_features(layers, x, positions, tree_mask, lengths, cache);
}

}  // namespace lamplighter
