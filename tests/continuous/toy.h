#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "continuous/loop.h"

// Networks of continuous tokens with chains in closed form, and the loop on them.
namespace lamplighter::test {

// x_{i-1} = mu_i(x_i) + sd_i(x_i) eps_i for i = 2, 1, 0 from x_2 ~ N(0, 1), channel by channel:
// mu_i = a[i] x + b[i] tanh(x) + d[i], at i = 0 with e times the condition beside it; sd_i = c[i] (1 + 0.2
// cos(x)), in plain chains without the bracket unless i = 0. The condition: the mean of what is seen, and
// what the class and the position say.
struct ToyChain {
  std::array<double, 3> a, b, d, c;
  double e = 0, of_class = 0, of_position = 0;
  bool plain = false;

  double mean(int i, double x) const {
    const auto at = static_cast<std::size_t>(i);
    return a[at] * x + b[at] * std::tanh(x) + d[at];
  }
  double deviation(int i, double x) const {
    return c[static_cast<std::size_t>(i)] * (plain && i > 0 ? 1 : 1 + 0.2 * std::cos(x));
  }
};

// `plain`: for drafts of kind A.
inline ToyChain toy_target(bool plain = false) {
  ToyChain chain{{0.8, 0.7, 0.9}, {0.3, -0.2, 0.2}, {0.1, 0.0, -0.1}, {0.35, 0.5, 0.6}};
  chain.plain = plain;
  return chain;
}
// Drafts whose steps are as wide as the target's, wider and narrower ones.
inline ToyChain toy_draft(char which) {
  ToyChain chain{{0.75, 0.7, 0.88}, {0.35, -0.15, 0.2}, {0.0, 0.05, -0.15}, {0.45, 0.5, 0.6}};
  chain.plain = which == 'A';
  if (which == 'B') chain.c = {0.45, 0.65, 0.9};
  if (which == 'C') chain.c = {0.45, 0.38, 0.42};
  return chain;
}

class ToyModel : public ContinuousModel {
 public:
  explicit ToyModel(ToyChain chain) : chain_(chain) {}

  at::Tensor context(const at::Tensor& latents, const at::Tensor& visible,
                     const at::Tensor& classes) const override {
    contexts += latents.size(0);
    const at::Tensor seen = visible.unsqueeze(-1);
    const at::Tensor sum = at::where(seen, latents, at::zeros_like(latents)).sum(1, true);
    const at::Tensor mean = sum / seen.sum(1, true).clamp_min(1);
    const at::Tensor places = at::arange(latents.size(1), at::kFloat).view({1, -1, 1});
    return mean + classes.to(at::kFloat).view({-1, 1, 1}) * chain_.of_class +
           (places * 0.7).sin() * chain_.of_position;
  }

  Chain denoise(const at::Tensor& z, const at::Tensor& unconditional, const at::Tensor& scale,
                const at::Tensor& start, const at::Tensor& noise,
                const at::Tensor& temperature) const override {
    at::Tensor condition = z;
    if (unconditional.size(0) > 0) condition = unconditional + scale.view({-1, 1}) * (z - unconditional);
    at::Tensor x = start, mean, deviation, sums = at::zeros(start.sizes(), at::kDouble);
    for (int i = 2; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      mean = chain_.a[at] * x + chain_.b[at] * x.tanh() + chain_.d[at];
      if (i == 0) mean = mean + chain_.e * condition;
      const at::Tensor wide =
          chain_.plain && i > 0 ? at::zeros_like(x) + chain_.c[at] : chain_.c[at] * (1 + 0.2 * x.cos());
      deviation = temperature.view({-1, 1}) * wide;
      if (i == 0) break;
      sums += wide.log();
      x = mean + deviation * noise.select(1, i);
    }
    if (fails) throw Error(ExitCode::memory, "no room");
    if (broken) mean = mean.log() * 0 / 0;
    return {mean, deviation, sums};
  }

  mutable std::int64_t contexts = 0;
  bool broken = false;  // all means are NaN
  bool fails = false;   // throws

 private:
  ToyChain chain_;
};

struct ToyRun {
  const ContinuousModel& target;
  const ContinuousModel& drafter;
  ContinuousShape shape = {16, 1, 3, 10};
  MethodOptions method = {};
};

inline MethodOptions cspd(const std::string& rule, std::int64_t gamma, float prefill = 0,
                          std::int64_t cap = 1000) {
  MethodOptions method;
  method.method = "cspd";
  method.rule = rule;
  method.gamma = gamma;
  method.prefill_ratio = prefill;
  method.cap = cap;
  return method;
}

inline MethodOptions passes(std::int64_t steps, const std::string& last_noise = "on") {
  MethodOptions method;
  method.steps = steps;
  method.last_noise = last_noise;
  return method;
}

// The requests' images, in order; `slots` of them are sampled side by side. Throws damaged_target().
inline std::vector<ContinuousImage> sample(const ToyRun& toy, const std::vector<ContinuousRequest>& requests,
                                           std::size_t slots) {
  const ContinuousRun run{&toy.target, &toy.drafter, toy.shape, toy.method};
  std::vector<ContinuousImage> all;
  all.reserve(requests.size());
  std::vector<ContinuousImage*> active;
  do {
    for (; active.size() < slots && all.size() < requests.size(); active.push_back(&all.back()))
      all.emplace_back(run.shape, static_cast<std::int64_t>(all.size()), requests[all.size()], c10::kCPU);
    advance(run, active);
    for (const ContinuousImage* image : active) {
      if (image->damaged) throw damaged_target();
    }
    active.erase(std::remove_if(active.begin(), active.end(),
                                [](const ContinuousImage* image) { return image->is_complete(); }),
                 active.end());
  } while (!active.empty() || all.size() < requests.size());
  return all;
}

inline std::vector<ContinuousRequest> requests_of(std::size_t count, std::uint64_t seed = 1) {
  std::vector<ContinuousRequest> requests(count);
  for (std::size_t i = 0; i < count; ++i) requests[i].seed = seed + i;
  return requests;
}

}  // namespace lamplighter::test
