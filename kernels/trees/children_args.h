#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/ops.h"
#include "kernels/sampling/distribution_args.h"
#include "kernels/trees/children.h"

// Operator arguments checked and turned into a parameter block, for every device. The results stay to be set.
namespace lamplighter {

// values and statistics of distributions [I, W, V]; shapes of draws: ops::Draws.
inline DrawChildrenArgs draw_children_args(const at::Tensor& values, const at::Tensor& statistics,
                                           const ops::Draws& draws) {
  constexpr const char* kOp = "draw_children";
  const CheckedRows checked = distribution_rows(kOp, "values", values, statistics);
  const at::Device device = values.device();
  check_tensor(kOp, "seeds", draws.seeds, at::kLong, device);
  check_shape(kOp, "seeds", draws.seeds, {checked.images});
  check_tensor(kOp, "steps", draws.steps, at::kLong, device);
  check_shape(kOp, "steps", draws.steps, {checked.images});
  check_tensor(kOp, "nodes", draws.nodes, at::kLong, device);
  check_shape(kOp, "nodes", draws.nodes, {checked.rows.rows});
  TORCH_CHECK(draws.count >= 1 && draws.count <= 1024, kOp, ": count is ", draws.count, ", expected 1..1024");
  DrawChildrenArgs args{};
  args.rows = checked.rows;
  args.seeds = draws.seeds.const_data_ptr<int64_t>();
  args.steps = draws.steps.const_data_ptr<int64_t>();
  args.nodes = draws.nodes.const_data_ptr<int64_t>();
  args.images = checked.images;
  args.count = draws.count;
  args.sampled = draws.sampled;
  return args;
}

}  // namespace lamplighter
