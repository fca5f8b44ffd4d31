#pragma once

#include <ATen/ops/empty.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"

// Random Gaussians of targets and drafts, and the operators' definitions on the host.
namespace lamplighter::test {

struct GaussianProblem {
  ops::GaussianPair pair;
  at::Tensor x, log_sigma, noise, uniforms;

  // spread: distance of the means in deviations.
  GaussianProblem(std::mt19937& rng, int64_t rows, int64_t channels, int64_t proposals, double spread) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(0.5, 1.5);
    const auto make = [](at::IntArrayRef sizes, auto value) {
      at::Tensor tensor = at::empty(sizes, at::kFloat);
      for (int64_t i = 0; i < tensor.numel(); ++i)
        tensor.mutable_data_ptr<float>()[i] = static_cast<float>(value(i));
      return tensor;
    };
    constexpr double kDeviation = 0.0064;
    pair.target_mean = make({rows, channels}, [&](int64_t) { return normal(rng); });
    pair.target_deviation = make({rows, channels}, [&](int64_t) { return kDeviation * uniform(rng); });
    const float* mean = pair.target_mean.const_data_ptr<float>();
    pair.draft_mean =
        make({rows, channels}, [&](int64_t i) { return mean[i] + spread * kDeviation * normal(rng); });
    pair.draft_deviation = make({rows, channels}, [&](int64_t) { return kDeviation * uniform(rng); });
    const float* draft = pair.draft_mean.const_data_ptr<float>();
    x = make({rows, channels}, [&](int64_t i) { return draft[i] + kDeviation * normal(rng); });
    noise = make({rows, proposals, channels}, [&](int64_t) { return normal(rng); });
    log_sigma = at::empty({rows}, at::kDouble);
    for (int64_t i = 0; i < rows; ++i)
      log_sigma.mutable_data_ptr<double>()[i] = i % 2 == 0 ? 0.0 : normal(rng);
    uniforms = at::empty({rows, proposals}, at::kDouble);
    for (int64_t i = 0; i < uniforms.numel(); ++i)
      uniforms.mutable_data_ptr<double>()[i] = static_cast<double>(rng()) * 0x1p-32;
  }

  int64_t rows() const { return x.size(0); }
  int64_t channels() const { return x.size(1); }

  // log p(value) - log q(value) of a row, as the formula stands.
  double log_ratio(int64_t row, const float* value) const {
    const auto log_density = [&](const at::Tensor& means, const at::Tensor& deviations) {
      double square = 0, logarithms = 0;
      for (int64_t c = 0; c < channels(); ++c) {
        const double mean = means.const_data_ptr<float>()[row * channels() + c];
        const double deviation = deviations.const_data_ptr<float>()[row * channels() + c];
        square += std::pow((static_cast<double>(value[c]) - mean) / deviation, 2);
        logarithms += std::log(deviation);
      }
      return -0.5 * square - logarithms;
    };
    return log_density(pair.target_mean, pair.target_deviation) -
           log_density(pair.draft_mean, pair.draft_deviation);
  }
};

}  // namespace lamplighter::test
