#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/sampling/distribution_args.h"
#include "kernels/trees/children.h"

// Operator arguments checked and turned into a parameter block, for every device. The results stay to be set.
namespace lamplighter {

// values and statistics of distributions [I, W, V]; seeds, steps int64 [I]; nodes int64 [W].
inline DrawChildrenArgs draw_children_args(const at::Tensor& values, const at::Tensor& seeds,
                                           const at::Tensor& steps, const at::Tensor& nodes, int64_t count,
                                           bool sampled, const at::Tensor& statistics) {
  constexpr const char* kOp = "draw_children";
  const CheckedRows checked = distribution_rows(kOp, "values", values, statistics);
  const at::Device device = values.device();
  check_tensor(kOp, "seeds", seeds, at::kLong, device);
  check_shape(kOp, "seeds", seeds, {checked.images});
  check_tensor(kOp, "steps", steps, at::kLong, device);
  check_shape(kOp, "steps", steps, {checked.images});
  check_tensor(kOp, "nodes", nodes, at::kLong, device);
  check_shape(kOp, "nodes", nodes, {checked.rows.rows});
  TORCH_CHECK(count >= 1 && count <= 1024, kOp, ": count is ", count, ", expected 1..1024");
  DrawChildrenArgs args{};
  args.rows = checked.rows;
  args.seeds = seeds.const_data_ptr<int64_t>();
  args.steps = steps.const_data_ptr<int64_t>();
  args.nodes = nodes.const_data_ptr<int64_t>();
  args.images = checked.images;
  args.count = count;
  args.sampled = sampled;
  return args;
}

}  // namespace lamplighter
