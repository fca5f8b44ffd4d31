#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/isa.h"
#include "kernels/sampling/distribution.h"

namespace lamplighter {

// uniforms: out[i][n] = philox_uniform(seeds[i], steps[i], purpose, n) of base/philox.h; the counter takes
// the low 32 bits of steps, purpose and n.
struct UniformsArgs {
  const int64_t* seeds;  // [images], bit patterns of unsigned numbers
  const int64_t* steps;  // [images]
  float* out;            // [images, count], multiples of 2^-24 in [0, 1)
  int64_t images;
  int64_t count;
  int64_t purpose;
};

enum class FilterOrder {
  kAr,    // temperature, top-k, top-p counted from the most probable token on
  kEagle  // temperature, top-p counted from the least probable token on, top-k
};

// guide_and_filter: the statistics that turn every row of logits into a distribution, in the conventions of
// the official code (LlamaGen's sampler for kAr, the logits warpers that EAGLE uses for kEagle):
// - guidance: z = u + (c - u) * guidance in fp32 (Ho & Salimans 2022); c itself where guidance is 1 or
//   c == u.
// - temperature: softmax of z / max(temperature, 1e-5); 0, in kEagle any up to 1e-5, is greedy: no filter,
//   the largest values alone share the probability.
// - top-k, for k > 0: removes values strictly below the k-th largest; ties at it stay.
// - top-p in kAr, for p < 1: removes a token when the mass before it exceeds p; the first one stays.
// - top-p in kEagle, for 1e-8 <= p < 1: removes a token when the mass up to and including it is at most
//   1 - p; the last one stays.
// Among equal values the smaller id counts as the more probable one in kAr and as the less probable one in
// kEagle. -inf has probability 0. A row with NaN or +inf, or with -inf only, is no distribution.
struct GuideAndFilterArgs {
  DistributionRows logits;   // without statistics
  const float* guidance;     // [images], or with guidance_by_row [images, rows]
  const float* temperature;  // [images]
  const int64_t* top_k;      // [images]
  const float* top_p;        // [images]
  RowStatistics* out;        // [images, rows]
  int64_t images;
  bool guidance_by_row;
  FilterOrder order;
};

// probabilities: out = the probabilities of logits and their statistics; rows sum to 1, or are zeros.
struct ProbabilitiesArgs {
  DistributionRows rows;
  float* out;  // [images, rows, vocabulary]
  int64_t images;
};

// sample: out = smallest id whose cumulative probability exceeds u * total; never an id of probability 0.
// Rows of images with temperature <= 0: the most probable id, the smallest among equals. -1 for rows of
// zeros. Probabilities below 2^-51 count as 0; rows need not sum to exactly 1.
struct SampleArgs {
  DistributionRows rows;
  const float* uniforms;     // [images, rows], of [0, 1)
  const float* temperature;  // [images]
  int64_t* out;              // [images, rows]
  int64_t images;
};

// CPU kernels over the rows [begin, end) of images * rows. A row's bits depend on that row alone and are
// equal for all instruction sets. `scratch`: sampling_scratch_bytes() bytes, 64-byte aligned, private to the
// calling thread.
size_t sampling_scratch_bytes(int64_t vocabulary);
template <Isa isa>
void guide_and_filter_cpu(const GuideAndFilterArgs& args, int64_t begin, int64_t end, void* scratch);
template <Isa isa>
void probabilities_cpu(const ProbabilitiesArgs& args, int64_t begin, int64_t end, void* scratch);
template <Isa isa>
void sample_cpu(const SampleArgs& args, int64_t begin, int64_t end, void* scratch);

// CUDA kernels over all rows, queued on `stream` (a cudaStream_t). `scratch`: images * rows *
// *_cuda_bytes() bytes; null where those are 0, because shared memory holds a row on the current device.
void uniforms_cuda(const UniformsArgs& args, void* stream);
size_t guide_and_filter_cuda_bytes(const DistributionRows& rows);
void guide_and_filter_cuda(const GuideAndFilterArgs& args, float* scratch, void* stream);
void probabilities_cuda(const ProbabilitiesArgs& args, void* stream);
size_t sample_cuda_bytes(const DistributionRows& rows);
void sample_cuda(const SampleArgs& args, float* scratch, void* stream);

}  // namespace lamplighter
