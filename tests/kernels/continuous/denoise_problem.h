#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/continuous/denoise_args.h"
#include "tests/kernels/common/operators.h"

// Random heads with tokens for them, and their chain operation by operation.
namespace lamplighter::test {

struct Denoised {
  at::Tensor mean, deviation, sums;
};

struct DenoiseShape {
  int64_t tokens = 3, hidden = 20, channels = 4, width = 24, depth = 2, steps = 5;
  bool guided = true;
};

struct DenoiseProblem {
  at::Tensor z, unconditional, scale, start, noise, temperature, times, tables;
  std::vector<at::Tensor> weights, biases, norms;  // weights [out, in]

  DenoiseProblem(std::mt19937& rng, const DenoiseShape& shape) {
    const auto normal = [&](at::IntArrayRef sizes, double spread = 1) {
      return random_tensor(rng, sizes, at::kFloat, static_cast<float>(spread));
    };
    const int64_t n = shape.tokens, width = shape.width, channels = shape.channels;
    z = normal({n, shape.hidden});
    unconditional = normal({shape.guided ? n : 0, shape.hidden});
    scale = normal({n}).abs() + 1;
    start = normal({n, channels});
    noise = normal({n, shape.steps, channels});
    noise.select(1, 0).fill_(std::numeric_limits<double>::quiet_NaN());  // it is not read
    temperature = normal({n}, 0.1) + 1;
    times = normal({shape.steps, width});
    tables = cosine_tables(shape.steps);
    const auto product = [&](int64_t in, int64_t out) {
      weights.push_back(normal({out, in}, 1 / std::sqrt(static_cast<double>(in))));
      biases.push_back(normal({out}, 0.3));
    };
    product(shape.hidden, width);
    product(channels, width);
    product(width, (3 * shape.depth + 2) * width);
    product(width, 2 * channels);
    for (int64_t block = 0; block < shape.depth; ++block) {
      norms.push_back(normal({width}, 0.2) + 1);
      norms.push_back(normal({width}, 0.2));
      product(width, width);
      product(width, width);
    }
  }

  // The tokens [first, first + count).
  DenoiseProblem part(int64_t first, int64_t count) const {
    DenoiseProblem all = *this;
    for (at::Tensor* rows : {&all.z, &all.scale, &all.start, &all.noise, &all.temperature})
      *rows = rows->narrow(0, first, count);
    if (unconditional.size(0) > 0) all.unconditional = unconditional.narrow(0, first, count);
    return all;
  }

  DenoiseProblem on(at::Device device) const {
    DenoiseProblem moved = *this;
    for (at::Tensor* tensor : {&moved.z, &moved.unconditional, &moved.scale, &moved.start, &moved.noise,
                               &moved.temperature, &moved.times, &moved.tables})
      *tensor = tensor->to(device);
    for (std::vector<at::Tensor>* list : {&moved.weights, &moved.biases, &moved.norms}) {
      for (at::Tensor& tensor : *list) tensor = tensor.to(device);
    }
    return moved;
  }

  std::vector<at::Tensor> packed() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& weight : weights) all.push_back(pack_linear(weight));
    return all;
  }

  // The operator.
  Denoised run() const {
    using Results = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
    static const auto op =
        find<Results(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                     const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                     at::TensorList, at::TensorList, at::TensorList, double)>("denoise");
    const std::vector<at::Tensor> ready = packed();
    const auto [mean, deviation, sums] = op.call(z, unconditional, scale, start, noise, temperature, times,
                                                 tables, ready, biases, norms, kEps);
    return {mean, deviation, sums};
  }

  DenoiseCall call(const std::vector<at::Tensor>& ready) const {
    return {z, unconditional, scale, start, noise, temperature, times, tables, ready, biases, norms, kEps};
  }

  // The formulas in `type`; sums as the formulas' doubles.
  Denoised reference(at::ScalarType type) const {
    const auto in = [=](const at::Tensor& tensor) { return tensor.to(type); };
    const auto row = [=](const at::Tensor& tensor) { return tensor.to(type).view({-1, 1}); };
    const at::Tensor conditions = product(in(at::cat({z, unconditional})), 0);
    const bool guided = unconditional.size(0) > 0;
    const int64_t count = z.size(0), channels = start.size(1);
    Denoised result;
    result.sums = at::zeros_like(start, at::kDouble);
    at::Tensor x = in(start);
    for (int64_t i = times.size(0) - 1; i >= 0; --i) {
      at::Tensor out = predict(guided ? at::cat({x, x}) : x, conditions + in(times[i]));
      const at::Tensor share = (out.narrow(0, 0, count).narrow(1, channels, channels) + 1) / 2;
      out = out.narrow(1, 0, channels);
      at::Tensor guess = out.narrow(0, 0, count);
      if (guided) {
        const at::Tensor free = out.narrow(0, count, count);
        guess = free + row(scale) * (guess - free);
      }
      const at::Tensor table = in(tables[i]);
      result.mean = table[2] * (table[0] * x - table[1] * guess) + table[3] * x;
      const at::Tensor log_deviation = 0.5 * (share * table[5] + (1 - share) * table[4]);
      result.deviation = row(temperature) * log_deviation.exp();
      if (i == 0) break;
      x = result.mean + result.deviation * in(noise.select(1, i));
      result.sums += log_deviation;
    }
    return result;
  }

  static constexpr double kEps = 1e-6;

 private:
  at::Tensor product(const at::Tensor& x, size_t i) const {
    return at::linear(x, weights[i].to(x.scalar_type()), biases[i].to(x.scalar_type()));
  }

  at::Tensor predict(const at::Tensor& tokens, const at::Tensor& conditions) const {
    const std::vector<at::Tensor> factors =
        product(at::silu(conditions), 2).chunk(3 * static_cast<int64_t>(norms.size()) / 2 + 2, 1);
    const int64_t width = times.size(1);
    at::Tensor x = product(tokens, 1);
    size_t at = 0;
    for (size_t block = 0; block < norms.size() / 2; ++block, at += 3) {
      const at::Tensor normed = at::layer_norm(x, {width}, norms[2 * block].to(x.scalar_type()),
                                               norms[2 * block + 1].to(x.scalar_type()), kEps);
      const at::Tensor inner = product(normed * (1 + factors[at + 1]) + factors[at], 4 + 2 * block);
      x = x + factors[at + 2] * product(at::silu(inner), 5 + 2 * block);
    }
    x = at::layer_norm(x, {width}, {}, {}, kEps) * (1 + factors[at + 1]) + factors[at];
    return product(x, 3);
  }

  // Of the cosine schedule with this number of steps (Nichol and Dhariwal 2021): fp32 [steps, 6].
  static at::Tensor cosine_tables(int64_t steps) {
    const double pi = std::acos(-1.0), count = static_cast<double>(steps);
    const auto kept = [=](double t) { return std::pow(std::cos((t / count + 0.008) / 1.008 * pi / 2), 2); };
    at::Tensor tables = at::empty({steps, kDenoiseTable}, at::kFloat);
    double before = 1, variance = 0;
    for (int64_t i = 0; i < steps; ++i) {
      const double t = static_cast<double>(i);
      const double beta = std::min(1 - kept(t + 1) / kept(t), 0.999), all = before * (1 - beta);
      variance = i == 0 ? beta / 2 : beta * (1 - before) / (1 - all);
      const double row[] = {std::sqrt(1 / all),
                            std::sqrt(1 / all - 1),
                            beta * std::sqrt(before) / (1 - all),
                            (1 - before) * std::sqrt(1 - beta) / (1 - all),
                            std::log(variance),
                            std::log(beta)};
      for (int64_t k = 0; k < kDenoiseTable; ++k) tables[i][k] = row[k];
      before = all;
    }
    return tables;
  }
};

// The largest difference from fp64 results, with those in fp32 for measure: at most eight times as far off.
inline bool as_near(const at::Tensor& got, const at::Tensor& exact, const at::Tensor& plain) {
  const auto distance = [&](const at::Tensor& from) {
    return (from.to(at::kDouble) - exact).abs().max().item<double>();
  };
  const double spread = exact.abs().max().item<double>();
  return distance(got) <= 8 * distance(plain) + 1e-6 * spread;  // NaN fails
}

}  // namespace lamplighter::test
