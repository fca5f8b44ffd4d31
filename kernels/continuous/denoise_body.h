#pragma once

#include <cmath>

#include "kernels/common/kernel_inline.h"
#include "kernels/continuous/denoise.h"

// What lies between the products of a chain, for one row or number, written once for every executor; meanings
// in kernels/continuous/denoise.h.
namespace lamplighter::continuous {

template <class Executor>
LAMPLIGHTER_INLINE void advance_row(Executor& executor, const DenoiseAdvanceArgs& args, int64_t row) {
  const int width = static_cast<int>(args.width);
  const auto plus = [](float a, float b) { return a + b; };
  float* stream = args.stream + row * args.width;
  const float* added = args.added + row % args.added_rows * args.width;
  const float* bias = args.bias;
  const float* factors = args.factors + row * args.stride;
  const float* factors_bias = args.factors_bias;
  if (args.first) {
    executor.for_each(width, [=](int i) { stream[i] = added[i] + bias[i]; });
  } else {
    executor.for_each(width, [=](int i) {
      stream[i] += (factors[i - width] + factors_bias[i - width]) * (added[i] + bias[i]);
    });
  }

  const float count = static_cast<float>(width);
  const float mean = executor.reduce(
                         width, 0.0F, [=](int i) { return stream[i]; }, plus) /
                     count;
  const auto square = [=](int i) { return (stream[i] - mean) * (stream[i] - mean); };
  const float deviation = sqrtf(executor.reduce(width, 0.0F, square, plus) / count + args.eps);
  const float inverse = 1.0F / deviation;
  float* out = args.out + row * args.width;
  const auto modulated = [=](float normed, int i) {
    const float scale = 1.0F + (factors[i + width] + factors_bias[i + width]);
    return normed * scale + (factors[i] + factors_bias[i]);
  };
  if (args.norm_weight == nullptr) {
    executor.for_each(width, [=](int i) { out[i] = modulated((stream[i] - mean) * inverse, i); });
  } else {
    const float* weight = args.norm_weight;
    const float* norm_bias = args.norm_bias;
    executor.for_each(width, [=](int i) {
      out[i] = modulated((stream[i] - mean) * inverse * weight[i] + norm_bias[i], i);
    });
  }
}

// Channel c of a token.
LAMPLIGHTER_INLINE void step_channel(const DenoiseStepArgs& args, int64_t token, int64_t c) {
  const int64_t index = token * args.channels + c;
  const float* predicted = args.predicted + token * 2 * args.channels;
  float noise = predicted[c] + args.bias[c];
  if (args.all.unconditional != nullptr) {
    const float free = predicted[args.all.tokens * 2 * args.channels + c] + args.bias[c];
    noise = free + args.all.scale[token] * (noise - free);
  }
  const float share = 0.5F * (predicted[args.channels + c] + args.bias[args.channels + c] + 1.0F);
  const float* table = args.table;
  const float x = args.x[index];
  const float mean = table[2] * (table[0] * x - table[1] * noise) + table[3] * x;
  const float log_deviation = 0.5F * (share * table[5] + (1.0F - share) * table[4]);
  const float deviation = args.all.temperature[token] * expf(log_deviation);
  if (args.step == 0) {
    args.all.mean[index] = mean;
    args.all.deviation[index] = deviation;
  } else {
    const float sampled = args.all.noise[(token * args.steps + args.step) * args.channels + c];
    args.all.mean[index] = mean + deviation * sampled;
    args.all.sums[index] += static_cast<double>(log_deviation);
  }
}

}  // namespace lamplighter::continuous
