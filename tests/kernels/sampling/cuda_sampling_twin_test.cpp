#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/step/ar_step_cases.h"
#include "tests/kernels/step/window_step_cases.h"

// The CUDA kernels that filter, sample and commit against the CPU's; skipped where no CUDA device is found.
namespace lamplighter::test {
namespace {

class CudaSamplingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  }

  std::mt19937 rng_{7};
};

// Of logits in one dtype.
class CudaSamplingTwinTest : public CudaSamplingTest, public ::testing::WithParamInterface<at::ScalarType> {
 protected:
  at::ScalarType dtype() const { return GetParam(); }
};

TEST_P(CudaSamplingTwinTest, GuideFilterAndSample) {
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t images = pick(rng_, 1, 3);
    const int64_t vocabulary = trial < 10 ? trial + 1 : pick(rng_, 11, 20000);
    at::Tensor logits = random_tensor(rng_, {images * (1 + trial % 2), 3, vocabulary}, dtype(), 2);
    if (trial % 4 == 0) logits = (logits * 2).round();  // many ties
    const auto each = [&](double value) { return at::full({images}, value, at::kFloat); };
    const at::Tensor guidance = each(trial % 2 == 0 ? 1 : 4);
    const at::Tensor temperature = each(trial % 7 == 0 ? 0 : 0.9);
    const at::Tensor top_k =
        integers({images}, [&](int64_t) { return pick(rng_, 0, 1) * pick(rng_, 1, vocabulary); });
    const at::Tensor top_p = each(trial % 3 == 0 ? 0.85 : 1);
    const std::string order = pick(rng_, 0, 1) == 0 ? "ar" : "eagle";
    const at::Tensor expected =
        ops::probabilities(ops::guide_and_filter(logits, {guidance, temperature, top_k, top_p, order}));
    const at::Tensor got = ops::probabilities(
        ops::guide_and_filter(logits.to(at::kCUDA), {guidance.to(at::kCUDA), temperature.to(at::kCUDA),
                                                     top_k.to(at::kCUDA), top_p.to(at::kCUDA), order}));
    // Rounding may move one token across a top-p limit.
    EXPECT_LE(((got.cpu() > 0) != (expected > 0)).sum().item<int64_t>(), 1) << "trial " << trial;
    EXPECT_LE((got.cpu() - expected).abs().max().item<float>(), 1e-4) << "trial " << trial;
    const at::Tensor uniforms = at::rand({images, 3});
    EXPECT_TRUE(ops::sample(expected.to(at::kCUDA), uniforms.to(at::kCUDA), temperature.to(at::kCUDA))
                    .cpu()
                    .equal(ops::sample(expected, uniforms, temperature)));
  }
}

// The tokens, not only nearly: rounding of a sum moves one in a hundred million.
TEST_P(CudaSamplingTwinTest, ArStep) {
  for (int trial = 0; trial < 120; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const int64_t vocabulary = trial % 10 == 0 ? pick(rng_, 16385, 70000) : pick(rng_, 1, 16384) / 8 * 8 + 8;
    ArStepCase expected = ar_step_case(rng_, trial, pick(rng_, 1, 9), vocabulary);
    expected.step.logits = expected.step.logits.to(dtype());
    ArStepCase got = expected.copy(at::kCUDA);
    ops::ar_step(got.step, got.state);
    ops::ar_step(expected.step, expected.state);
    const std::vector<at::Tensor*> a = got.changed(), b = expected.changed();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i]->cpu().equal(*b[i])) << "tensor " << i;
  }
}

TEST_P(CudaSamplingTwinTest, WindowStep) {
  for (int trial = 0; trial < 84; ++trial) {
    const int64_t vocabulary = trial % 10 == 0 ? pick(rng_, 16385, 40000) : pick(rng_, 1, 2048) * 8;
    WindowStepCase expected = window_step_case(rng_, trial, pick(rng_, 1, 4), vocabulary, pick(rng_, 2, 9));
    expected.window.logits = expected.window.logits.to(dtype());
    for (int cycle = 0; cycle < window_cycles(trial); ++cycle) {
      SCOPED_TRACE("trial " + std::to_string(trial) + " cycle " + std::to_string(cycle));
      expected.score(rng_, trial, 0.3F);
      WindowStepCase got = expected.copy(at::kCUDA);
      const ops::WindowRows rows = ops::window_step(got.step, got.window, got.state);
      const ops::WindowRows wanted = ops::window_step(expected.step, expected.window, expected.state);
      EXPECT_TRUE(rows.rows.cpu().equal(wanted.rows));
      EXPECT_TRUE(rows.count.cpu().equal(wanted.count));
      const std::vector<at::Tensor*> a = got.changed(), b = expected.changed();
      for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i]->cpu().equal(*b[i])) << "tensor " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, CudaSamplingTwinTest, ::testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

TEST_F(CudaSamplingTest, UniformsAreThoseOfTheCpu) {
  const at::Tensor seeds = at::tensor({int64_t{42}, int64_t{-1}, int64_t{1} << 62}, at::kLong);
  const at::Tensor steps = at::tensor({0, 5, 575}, at::kLong);
  const at::Tensor host = ops::uniforms(seeds, steps, ops::Purpose::accept, 1000);
  const at::Tensor device =
      ops::uniforms(seeds.to(at::kCUDA), steps.to(at::kCUDA), ops::Purpose::accept, 1000);
  EXPECT_TRUE(same_bits(device.cpu(), host));
}

// Chi-square of a million samples, level 1e-6.
TEST_F(CudaSamplingTest, SamplesFollowTheDistribution) {
  constexpr int64_t kSamples = 1 << 20;
  constexpr double kCritical = 40.53;  // 7 degrees of freedom
  const std::vector<double> p = {0.001, 0.009, 0.04, 0.05, 0.1, 0.2, 0.25, 0.35};
  const at::Tensor row = at::tensor(p).to(at::kFloat);
  const at::Tensor probabilities = row.expand({1, kSamples, 8}).contiguous().to(at::kCUDA);
  const at::Tensor zero = at::full({1}, 0, at::kLong).to(at::kCUDA);
  const at::Tensor uniforms = ops::uniforms(zero, zero, ops::Purpose::token, kSamples);
  const at::Tensor tokens =
      ops::sample(probabilities, uniforms, at::full({1}, 1.0, at::kFloat).to(at::kCUDA)).cpu();
  double statistic = 0;
  for (int64_t id = 0; id < 8; ++id) {
    const double expected = p[static_cast<size_t>(id)] * kSamples;
    const double count = static_cast<double>((tokens == id).sum().item<int64_t>());
    statistic += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(statistic, kCritical);
}

}  // namespace
}  // namespace lamplighter::test
