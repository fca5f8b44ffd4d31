#include <ATen/Context.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/common/isa.h"
#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/continuous/gaussian_problem.h"

namespace lamplighter::test {
namespace {

class ContinuousTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (limit_isa(GetParam()) != GetParam()) GTEST_SKIP() << "not on this CPU";
  }
  void TearDown() override { limit_isa(kBestIsa); }

  std::mt19937 rng_{31};
};

TEST_P(ContinuousTest, TheRatioIsThatOfTheFormula) {
  for (int trial = 0; trial < 40; ++trial) {
    const int64_t rows = pick(rng_, 1, 7), channels = pick(rng_, 1, 20);
    const GaussianProblem problem(rng_, rows, channels, 1, trial % 3 == 0 ? 50 : 0.5);
    const at::Tensor got = ops::gaussian_log_ratio(problem.x, problem.pair);
    for (int64_t row = 0; row < rows; ++row) {
      const double expected = problem.log_ratio(row, problem.x.const_data_ptr<float>() + row * channels);
      EXPECT_NEAR(got[row].item<double>(), expected, 1e-10 * (100 + std::abs(expected)));
    }
  }
}

TEST_P(ContinuousTest, EqualGaussiansHaveNoRatio) {
  GaussianProblem problem(rng_, 5, 16, 1, 1);
  problem.pair.draft_mean = problem.pair.target_mean;
  problem.pair.draft_deviation = problem.pair.target_deviation;
  EXPECT_EQ(ops::gaussian_log_ratio(problem.x, problem.pair).abs().max().item<double>(), 0);
}

TEST_P(ContinuousTest, WhatIsNotFiniteIsNoRatio) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {infinity, -infinity, std::nan("")}) {
    for (int which = 0; which < 5; ++which) {
      GaussianProblem problem(rng_, 2, 3, 4, 1);
      at::Tensor* const tensors[] = {&problem.x, &problem.pair.target_mean, &problem.pair.target_deviation,
                                     &problem.pair.draft_mean, &problem.pair.draft_deviation};
      (*tensors[which])[1][2] = bad;
      const at::Tensor got = ops::gaussian_log_ratio(problem.x, problem.pair);
      EXPECT_TRUE(std::isfinite(got[0].item<double>()));
      EXPECT_TRUE(std::isnan(got[1].item<double>())) << which << ' ' << bad;
    }
  }
  GaussianProblem problem(rng_, 1, 3, 4, 1);
  problem.pair.draft_deviation[0][0] = 0;
  EXPECT_TRUE(std::isnan(ops::gaussian_log_ratio(problem.x, problem.pair).item<double>()));
  const auto [token, tries] =
      ops::gaussian_residual(problem.pair, problem.log_sigma, problem.noise, problem.uniforms);
  EXPECT_EQ(tries.item<int64_t>(), 0);
}

TEST_P(ContinuousTest, TheFirstProposalThatPassesStays) {
  int64_t first = 0, later = 0, none = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t rows = pick(rng_, 1, 5), channels = pick(rng_, 1, 17),
                  proposals = pick(rng_, 1, trial % 2 == 0 ? 3 : 40);
    const GaussianProblem problem(rng_, rows, channels, proposals, trial % 4 == 0 ? 4 : 0.2);
    const auto [token, tries] =
        ops::gaussian_residual(problem.pair, problem.log_sigma, problem.noise, problem.uniforms);
    for (int64_t row = 0; row < rows; ++row) {
      int64_t expected = 0;
      std::vector<float> y(static_cast<std::size_t>(channels));
      for (int64_t r = 0; r < proposals && expected == 0; ++r) {
        for (int64_t c = 0; c < channels; ++c) {
          const double mean = problem.pair.target_mean[row][c].item<float>();
          const double deviation = problem.pair.target_deviation[row][c].item<float>();
          y[static_cast<std::size_t>(c)] =
              static_cast<float>(mean + deviation * problem.noise[row][r][c].item<float>());
        }
        const double log_ratio = problem.log_sigma[row].item<double>() + problem.log_ratio(row, y.data());
        const double chance = std::max(0.0, 1.0 - std::exp(-log_ratio));
        if (problem.uniforms[row][r].item<double>() < chance) expected = r + 1;
      }
      EXPECT_EQ(tries[row].item<int64_t>(), expected);
      for (int64_t c = 0; c < channels; ++c)
        EXPECT_EQ(token[row][c].item<float>(), y[static_cast<std::size_t>(c)]);
      ++(expected == 0 ? none : expected == 1 ? first : later);
    }
  }
  EXPECT_GT(first, 10);
  EXPECT_GT(later, 10);
  EXPECT_GT(none, 10);
}

TEST_P(ContinuousTest, EveryInstructionSetGivesTheSameBits) {
  const GaussianProblem problem(rng_, 9, 16, 33, 0.7);
  const at::Tensor ratio = ops::gaussian_log_ratio(problem.x, problem.pair);
  const auto [token, tries] =
      ops::gaussian_residual(problem.pair, problem.log_sigma, problem.noise, problem.uniforms);
  limit_isa(Isa::kPortable);
  EXPECT_TRUE(at::equal(ops::gaussian_log_ratio(problem.x, problem.pair), ratio));
  const auto [other, others] =
      ops::gaussian_residual(problem.pair, problem.log_sigma, problem.noise, problem.uniforms);
  EXPECT_TRUE(at::equal(other, token));
  EXPECT_TRUE(at::equal(others, tries));
}

TEST_P(ContinuousTest, WrongArgumentsAreNamed) {
  const GaussianProblem problem(rng_, 2, 3, 4, 1);
  const auto refuses = [](auto call, const std::string& words) {
    try {
      call();
      ADD_FAILURE() << "accepted, expected: " << words;
    } catch (const c10::Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refuses([&] { ops::gaussian_log_ratio(problem.x.narrow(0, 0, 1), problem.pair); },
          "gaussian_log_ratio: x has shape");
  refuses([&] { ops::gaussian_log_ratio(problem.x.to(at::kDouble), problem.pair); },
          "gaussian_log_ratio: x has dtype");
  refuses(
      [&] {
        ops::gaussian_residual(problem.pair, problem.log_sigma, problem.noise.narrow(1, 0, 0),
                               problem.uniforms.narrow(1, 0, 0));
      },
      "gaussian_residual: noise has shape");
}

INSTANTIATE_TEST_SUITE_P(Isas, ContinuousTest, instruction_sets(),
                         [](const auto& each) { return std::string(isa_name(each.param)); });

TEST(CudaContinuous, RatiosAndProposalsAreThoseOfTheCpu) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  const auto there = [](const at::Tensor& tensor) { return tensor.to(at::kCUDA); };
  std::mt19937 rng(43);
  for (int trial = 0; trial < 20; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const GaussianProblem problem(rng, pick(rng, 1, 150), 16, 30, trial % 3 == 0 ? 3 : 0.3);
    const ops::GaussianPair pair{there(problem.pair.target_mean), there(problem.pair.target_deviation),
                                 there(problem.pair.draft_mean), there(problem.pair.draft_deviation)};
    const at::Tensor ratio = ops::gaussian_log_ratio(problem.x, problem.pair);
    const at::Tensor own_ratio = ops::gaussian_log_ratio(there(problem.x), pair).cpu();
    EXPECT_LE(((own_ratio - ratio).abs() / ratio.abs().clamp_min(1)).max().item<double>(), 1e-12);
    const auto [token, tries] =
        ops::gaussian_residual(problem.pair, problem.log_sigma, problem.noise, problem.uniforms);
    const auto [own_token, own_tries] =
        ops::gaussian_residual(pair, there(problem.log_sigma), there(problem.noise), there(problem.uniforms));
    EXPECT_TRUE(own_tries.cpu().equal(tries));
    EXPECT_LE((own_token.cpu() - token).abs().max().item<float>(), 1e-6F);
  }
}

}  // namespace
}  // namespace lamplighter::test
