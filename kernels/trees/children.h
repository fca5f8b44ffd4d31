#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/isa.h"
#include "kernels/sampling/distribution.h"
#include "kernels/sampling/sampling.h"

namespace lamplighter {

// sample_children: `count` tokens of each row in the order in which they are sampled; -1 where no mass is
// left, with the conditional probability 0. A probability that is not > 0 or not finite counts as 0.
//   sampled:  without replacement, proportionally to the probabilities. An exponential race: token x finishes
//             at E(x) / p(x) and the first `count` win in their order, which is the distribution of sampling
//             one after another (Efraimidis & Spirakis 2006). E = -log(1 - (w + 1/2) / 2^32) with w the first
//             word of Philox (base/philox.h) for key = seed and counter = (step, 2, node, x): a token's
//             number depends neither on the batch, nor on other nodes, nor on `count`. conditional: p(x) /
//             the sum over the tokens not sampled before it, a sum whose absolute error is at most V * 2^-71.
//   else:     the most probable tokens; conditional = 1.
// Equal candidates: the smaller id first. Bits are equal on all devices.
struct SampleChildrenArgs {
  DistributionRows rows;  // [images, width, vocabulary]; probabilities need not sum to exactly 1
  const int64_t* seeds;   // [images], bit patterns of unsigned numbers
  const int64_t* steps;   // [images], the low 32 bits count
  const int64_t* nodes;   // [width], likewise
  int64_t* tokens;        // [images, width, count]
  float* conditional;     // [images, width, count]; null where nobody reads it
  int64_t images;
  int64_t count;
  bool sampled;
};

// CPU kernels over the rows [begin, end) of images * width. `scratch`: sample_children_scratch_bytes() bytes,
// 64-byte aligned, private to the calling thread.
size_t sample_children_scratch_bytes(int64_t vocabulary);
template <Isa isa>
void sample_children_cpu(const SampleChildrenArgs& args, int64_t begin, int64_t end, void* scratch);

// CUDA kernel over all rows, one block each, queued on `stream` (a cudaStream_t). `scratch`: images * width *
// sample_children_scratch_bytes() bytes.
void sample_children_cuda(const SampleChildrenArgs& args, void* scratch, void* stream);

// draft_children: guide_and_filter, then sample_children of the rows that it describes, in one launch, a
// cluster for each row where one holds it. `scratch` as above; `rows`: draft_children_cuda_bytes() bytes for
// each row, null when that is 0.
size_t draft_children_cuda_bytes(const DistributionRows& rows);
void draft_children_cuda(const GuideAndFilterArgs& filter, const SampleChildrenArgs& sample, void* scratch,
                         float* rows, void* stream);

}  // namespace lamplighter
