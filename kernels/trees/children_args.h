#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

#include "kernels/common/exported.h"
#include "kernels/sampling/sampling_args.h"

namespace lamplighter {
namespace ops {

// Children sampled of each row; meanings in kernels/trees/children.h.
struct ChildSampling {
  at::Tensor seeds;  // int64 [I]
  at::Tensor steps;  // int64 [I]
  at::Tensor nodes;  // int64 [W], numbers of the rows
  std::int64_t count = 0;
  bool sampled = true;  // without replacement; false: the most probable tokens
};

// rows [I, W, V] -> tokens int64 [I, W, count] in the order sampled, -1 when no mass is left, and their
// conditional probabilities fp32 [I, W, count].
LAMPLIGHTER_EXPORTED std::tuple<at::Tensor, at::Tensor> sample_children(const Distributions& rows,
                                                                        const ChildSampling& samples);

// guide_and_filter, then sample_children of the rows: distributions, and their tokens.
LAMPLIGHTER_EXPORTED std::tuple<Distributions, at::Tensor> draft_children(const at::Tensor& logits,
                                                                          const Filtering& filtering,
                                                                          const ChildSampling& samples);

}  // namespace ops

struct SampleChildrenArgs;

// Arguments checked and turned into what kernels take, without the addresses of results.
LAMPLIGHTER_EXPORTED SampleChildrenArgs sample_children_args(const ops::Distributions& rows,
                                                             const ops::ChildSampling& samples);

}  // namespace lamplighter
