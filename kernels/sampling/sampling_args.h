#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "kernels/common/exported.h"
#include "kernels/sampling/distribution_args.h"

namespace lamplighter {
namespace ops {

// What a random number is for; part of the counter, so that samples for different purposes never coincide.
enum class Purpose : std::int64_t {
  token = 0,
  accept = 1,
  children = 2,
  window = 3,
  fill = 4,
  // of continuous tokens, src/continuous/random_numbers.h
  order = 5,
  start = 6,
  noise = 7,
  proposal = 8,
  residual = 9
};

// seeds, steps int64 [I] -> fp32 [I, count] in [0, 1), multiples of 2^-24.
LAMPLIGHTER_EXPORTED at::Tensor uniforms(const at::Tensor& seeds, const at::Tensor& steps, Purpose purpose,
                                         std::int64_t count);

// What guide_and_filter does to logits; meanings in kernels/sampling/sampling.h.
struct Filtering {
  at::Tensor guidance;     // fp32 [I] or [I, R]
  at::Tensor temperature;  // fp32 [I]
  at::Tensor top_k;        // int64 [I]
  at::Tensor top_p;        // fp32 [I]
  std::string order;       // ar, eagle
};

// logits [S, R, V] -> distributions [I, R, V] that refer to them.
LAMPLIGHTER_EXPORTED Distributions guide_and_filter(const at::Tensor& logits, const Filtering& filtering);

// rows [I, R, V], uniforms fp32 [I, R], temperature fp32 [I] -> tokens int64 [I, R].
LAMPLIGHTER_EXPORTED at::Tensor sample(const Distributions& rows, const at::Tensor& uniforms,
                                       const at::Tensor& temperature);

}  // namespace ops

struct GuideAndFilterArgs;
struct ProbabilitiesArgs;
struct SampleArgs;

// Arguments checked and turned into what kernels take, without the addresses of results.
LAMPLIGHTER_EXPORTED GuideAndFilterArgs guide_and_filter_args(const at::Tensor& logits,
                                                              const ops::Filtering& filtering);
LAMPLIGHTER_EXPORTED ProbabilitiesArgs probabilities_args(const ops::Distributions& rows);
LAMPLIGHTER_EXPORTED SampleArgs sample_args(const ops::Distributions& rows, const at::Tensor& uniforms,
                                            const at::Tensor& temperature);

// Room for the result of guide_and_filter.
LAMPLIGHTER_EXPORTED at::Tensor filter_statistics(GuideAndFilterArgs& args, const at::Tensor& logits);

}  // namespace lamplighter
