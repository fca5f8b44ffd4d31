#pragma once

#include <cstdint>
#include <vector>

#include "kernels/common/isa.h"

namespace lamplighter {

// denoise: the chain of the diffusion head of MAR (Li et al. 2024, arXiv 2406.11838, section 3.2; steps of
// Nichol and Dhariwal 2021, arXiv 2102.09672) for tokens side by side, from noise to the mean and deviation
// of the last step. Everything is fp32, because the chain multiplies errors by hundreds. Rows are the tokens
// with their label; guided ones have as many rows without it behind them. A row passes, in every step,
//   c = silu(condition(z) + times[step])
//   x = input(x)
//   x = x + gate outer(silu(inner(norm(x) (1 + scale) + shift)))   for each block
//   out = output(norm(x) (1 + scale) + shift)                       noise, then the share of the variance
// where modulation(c) holds shift, scale and gate of every block, then shift and scale of the output, and
// norm is a LayerNorm, the last one without weight and bias. A token's bits depend on its own inputs alone
// (on CUDA as far as the library's products do).

// y = x W^T + b.
struct DenoiseProduct {
  const float* weight;  // packed for the CPU (pack_linear), [out, in] for CUDA
  const float* bias;    // [out]
  int64_t in;
  int64_t out;
};

struct DenoiseBlock {
  const float* norm_weight;  // [width]
  const float* norm_bias;    // [width]
  DenoiseProduct inner;
  DenoiseProduct outer;
};

struct DenoiseHead {
  DenoiseProduct condition;   // width of z -> width
  DenoiseProduct input;       // channels -> width
  DenoiseProduct modulation;  // width -> (3 * blocks + 2) * width
  DenoiseProduct output;      // width -> 2 * channels
  std::vector<DenoiseBlock> blocks;
  const float* times;   // [steps, width]: step 0 is the last one
  const float* tables;  // [steps, 6]: kDenoiseTable numbers of a step
  int64_t steps;
  float eps;
};

// sqrt(1 / a), sqrt(1 / a - 1) for a = alphas_cumprod; factors of the clean token and of x in the posterior's
// mean; log of the posterior's variance; log of beta.
constexpr int64_t kDenoiseTable = 6;

struct DenoiseTokens {
  const float* z;              // [tokens, width of z]
  const float* unconditional;  // like z; null: no guidance
  const float* scale;          // [tokens], of the guidance
  const float* start;          // [tokens, channels]
  const float* noise;          // [tokens, steps, channels]; that of step 0 is not read
  const float* temperature;    // [tokens], a factor of deviations
  float* mean;                 // out [tokens, channels], of step 0; x between the steps
  float* deviation;            // out [tokens, channels], of step 0
  double* sums;                // out [tokens, channels]: log deviations of the other steps added up, without
                               // temperature; zeros before
  int64_t tokens;
};

// What lies between the products.

// out = silu(x + bias + times), for every row and step.
struct DenoiseSiluArgs {
  const float* x;      // [rows, width]
  const float* bias;   // [width]
  const float* times;  // [steps, width]; null: nothing, for one step
  float* out;          // [steps, rows, width]; may be x where there is one step
  int64_t rows;
  int64_t steps;
  int64_t width;
};

// Ends a block, or the input, and begins the next one, or the output:
//   stream = added + bias                        after the input
//   stream = stream + gate (added + bias)        after a block
//   out = norm(stream) (1 + scale) + shift
struct DenoiseAdvanceArgs {
  float* stream;              // [rows, width]
  const float* added;         // [rows, width], a product; after the input [added_rows, width], which repeat
  const float* bias;          // [width], of that product
  const float* factors;       // [rows, stride]: shift and scale, [width] each, from this address on, the gate
                              // of the block before it in front of them
  const float* factors_bias;  // the same of the modulation's bias
  const float* norm_weight;   // [width]; null: none, as norm_bias
  const float* norm_bias;
  float* out;  // [rows, width]; may be `added` after a block
  int64_t rows;
  int64_t added_rows;
  int64_t width;
  int64_t stride;
  float eps;
  bool first;  // after the input
};

// The step of a token from what the head predicts: guided noise, and the variance of the row with the label.
struct DenoiseStepArgs {
  const float* predicted;  // [rows, 2 * channels], a product
  const float* bias;       // [2 * channels], of that product
  const float* x;          // [tokens, channels]; may be the mean
  const float* table;      // [kDenoiseTable]
  DenoiseTokens all;
  int64_t channels;
  int64_t steps;
  int64_t step;
};

// CPU kernels over the rows, or tokens, [begin, end); for silu, tokens of all steps.
template <Isa isa>
void denoise_silu_cpu(const DenoiseSiluArgs& args, int64_t begin, int64_t end);
template <Isa isa>
void denoise_advance_cpu(const DenoiseAdvanceArgs& args, int64_t begin, int64_t end);
template <Isa isa>
void denoise_step_cpu(const DenoiseStepArgs& args, int64_t begin, int64_t end);

// All rows, or tokens, on `stream` (a cudaStream_t).
void denoise_silu_cuda(const DenoiseSiluArgs& args, void* stream);
void denoise_advance_cuda(const DenoiseAdvanceArgs& args, void* stream);
void denoise_step_cuda(const DenoiseStepArgs& args, void* stream);

}  // namespace lamplighter
