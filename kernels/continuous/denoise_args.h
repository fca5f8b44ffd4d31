#pragma once

#include <ATen/core/List.h>

#include <vector>

#include "kernels/common/checks.h"
#include "kernels/continuous/denoise.h"
#include "kernels/linear/linear.h"

// The arguments of denoise checked and turned into parameter blocks, for every device.
namespace lamplighter {

// What the operator is called with; shapes in denoise_head() and denoise_tokens().
struct DenoiseCall {
  const at::Tensor& z;
  const at::Tensor& unconditional;
  const at::Tensor& scale;
  const at::Tensor& start;
  const at::Tensor& noise;
  const at::Tensor& temperature;
  const at::Tensor& times;
  const at::Tensor& tables;
  at::TensorList weights;
  at::TensorList biases;
  at::TensorList norms;
  double eps;
};

constexpr const char* kDenoise = "denoise";

// A contiguous fp32 tensor of this shape beside the start.
inline const float* denoise_numbers(const DenoiseCall& call, const char* name, const at::Tensor& tensor,
                                    std::initializer_list<int64_t> shape) {
  check_tensor(kDenoise, name, tensor, at::kFloat, call.start.device());
  check_shape(kDenoise, name, tensor, shape);
  return tensor.const_data_ptr<float>();
}

inline DenoiseProduct denoise_product(const DenoiseCall& call, size_t i, int64_t in, int64_t out) {
  DenoiseProduct product{};
  product.weight = call.start.is_cuda()
                       ? denoise_numbers(call, "a weight", call.weights[i], {out, in})
                       : denoise_numbers(call, "a packed weight", call.weights[i],
                                         {(out + kLinearBlock - 1) / kLinearBlock, in, kLinearBlock});
  product.bias = denoise_numbers(call, "a bias", call.biases[i], {out});
  product.in = in;
  product.out = out;
  return product;
}

// times fp32 [T, W], tables fp32 [T, 6]; weights of pack_linear and biases of condition, input, modulation,
// output, and inner and outer of every block; norms: weight and bias [W] of every block.
inline DenoiseHead denoise_head(const DenoiseCall& call) {
  check_shape(kDenoise, "z", call.z, {kAny, kAny});
  check_shape(kDenoise, "start", call.start, {kAny, kAny});
  check_shape(kDenoise, "times", call.times, {kAny, kAny});
  const size_t blocks = call.norms.size() / 2, products = 4 + 2 * blocks;
  TORCH_CHECK(call.norms.size() % 2 == 0 && call.weights.size() == products && call.biases.size() == products,
              kDenoise, ": got ", call.weights.size(), " weights, ", call.biases.size(), " biases and ",
              call.norms.size(), " tensors of norms, expected 4 + 2 B, 4 + 2 B and 2 B of B blocks");
  const int64_t channels = call.start.size(1), width = call.times.size(1);
  TORCH_CHECK(channels > 0 && width > 0 && width <= kLinearMostInputs && call.times.size(0) > 0, kDenoise,
              ": start has shape ", call.start.sizes(), " and times ", call.times.sizes(),
              ", expected no empty dimension and a width up to ", kLinearMostInputs);
  const auto factors = (3 * static_cast<int64_t>(blocks) + 2) * width;
  DenoiseHead head{};
  head.condition = denoise_product(call, 0, call.z.size(1), width);
  head.input = denoise_product(call, 1, channels, width);
  head.modulation = denoise_product(call, 2, width, factors);
  head.output = denoise_product(call, 3, width, 2 * channels);
  for (size_t b = 0; b < blocks; ++b) {
    head.blocks.push_back({denoise_numbers(call, "a norm's weight", call.norms[2 * b], {width}),
                           denoise_numbers(call, "a norm's bias", call.norms[2 * b + 1], {width}),
                           denoise_product(call, 4 + 2 * b, width, width),
                           denoise_product(call, 5 + 2 * b, width, width)});
  }
  head.steps = call.times.size(0);
  head.times = denoise_numbers(call, "times", call.times, {head.steps, width});
  head.tables = denoise_numbers(call, "tables", call.tables, {head.steps, kDenoiseTable});
  head.eps = static_cast<float>(call.eps);
  return head;
}

// z fp32 [N, D], unconditional [N, D] or [0, D], scale and temperature fp32 [N], start fp32 [N, C], noise
// fp32 [N, T, C]. The results stay to be set.
inline DenoiseTokens denoise_tokens(const DenoiseCall& call, const DenoiseHead& head) {
  const int64_t count = call.start.size(0), in = head.condition.in, channels = head.input.in;
  DenoiseTokens tokens{};
  tokens.tokens = count;
  tokens.z = denoise_numbers(call, "z", call.z, {count, in});
  if (call.unconditional.numel() > 0)
    tokens.unconditional = denoise_numbers(call, "unconditional", call.unconditional, {count, in});
  tokens.scale = denoise_numbers(call, "scale", call.scale, {count});
  tokens.start = denoise_numbers(call, "start", call.start, {count, channels});
  tokens.noise = denoise_numbers(call, "noise", call.noise, {count, head.steps, channels});
  tokens.temperature = denoise_numbers(call, "temperature", call.temperature, {count});
  return tokens;
}

// `count` of them from `first` on.
inline DenoiseTokens denoise_part(const DenoiseTokens& all, const DenoiseHead& head, int64_t first,
                                  int64_t count) {
  const int64_t in = head.condition.in, channels = head.input.in;
  DenoiseTokens part = all;
  part.z += first * in;
  if (all.unconditional != nullptr) part.unconditional += first * in;
  part.scale += first;
  part.start += first * channels;
  part.noise += first * head.steps * channels;
  part.temperature += first;
  part.mean += first * channels;
  part.deviation += first * channels;
  part.sums += first * channels;
  part.tokens = count;
  return part;
}

}  // namespace lamplighter
