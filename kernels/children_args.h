#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/checks.h"
#include "kernels/children.h"

// Operator arguments checked and turned into a parameter block, for every device. The results stay to be set.
namespace lamplighter {

// probabilities fp32 [I, W, V]; seeds, steps int64 [I]; nodes int64 [W].
inline DrawChildrenArgs draw_children_args(const at::Tensor& probabilities, const at::Tensor& seeds,
                                           const at::Tensor& steps, const at::Tensor& nodes, int64_t count,
                                           bool sampled) {
  constexpr const char* kOp = "draw_children";
  const at::Device device = probabilities.device();
  check_tensor(kOp, "probabilities", probabilities, at::kFloat, device);
  check_shape(kOp, "probabilities", probabilities, {kAny, kAny, kAny});
  check_vocabulary(kOp, probabilities, probabilities.size(2));
  check_tensor(kOp, "seeds", seeds, at::kLong, device);
  check_shape(kOp, "seeds", seeds, {probabilities.size(0)});
  check_tensor(kOp, "steps", steps, at::kLong, device);
  check_shape(kOp, "steps", steps, {probabilities.size(0)});
  check_tensor(kOp, "nodes", nodes, at::kLong, device);
  check_shape(kOp, "nodes", nodes, {probabilities.size(1)});
  TORCH_CHECK(count >= 1 && count <= 1024, kOp, ": count is ", count, ", expected 1..1024");
  DrawChildrenArgs args{};
  args.probabilities = probabilities.const_data_ptr<float>();
  args.seeds = seeds.const_data_ptr<int64_t>();
  args.steps = steps.const_data_ptr<int64_t>();
  args.nodes = nodes.const_data_ptr<int64_t>();
  args.images = probabilities.size(0);
  args.width = probabilities.size(1);
  args.vocabulary = probabilities.size(2);
  args.count = count;
  args.sampled = sampled;
  return args;
}

}  // namespace lamplighter
