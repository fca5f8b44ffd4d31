#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "kernels/continuous/gaussian_args.h"
#include "tests/kernels/continuous/gaussian_problem.h"

#include "tests/kernels/common/emulated_device.h"

#include "kernels/continuous/gaussian_cuda.h"

// The CUDA kernels of continuous tokens on an emulated device against the CPU's operators: equal bits.
namespace lamplighter::test {
namespace {

TEST(ContinuousKernels, RatiosAndProposalsAreThoseOfTheCpu) {
  std::mt19937 rng(37);
  int64_t none = 0, some = 0;
  for (int trial = 0; trial < 12; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    emulated::shuffle() = static_cast<unsigned>(trial);
    const int64_t rows = trial == 11 ? 150 : pick(rng, 1, 5);
    const GaussianProblem problem(rng, rows, pick(rng, 1, 18), trial == 10 ? 300 : pick(rng, 1, 30),
                                  trial % 3 == 0 ? 3 : 0.3);
    const at::Tensor ratio = ops::gaussian_log_ratio(problem.x, problem.pair);
    GaussianLogRatioArgs ratio_args = gaussian_log_ratio_args(problem.x, problem.pair);
    at::Tensor own_ratio = at::empty_like(ratio);
    ratio_args.out = own_ratio.mutable_data_ptr<double>();
    const int64_t blocks = (rows + kGaussianThreads - 1) / kGaussianThreads;
    emulated::launch({static_cast<unsigned>(blocks)}, {kGaussianThreads}, 0,
                     [&] { gaussian_log_ratio_kernel(ratio_args); });
    EXPECT_TRUE(at::equal(own_ratio, ratio));

    const auto [token, tries] =
        ops::gaussian_residual(problem.pair, problem.log_sigma, problem.noise, problem.uniforms);
    GaussianResidualArgs args =
        gaussian_residual_args(problem.pair, problem.log_sigma, problem.noise, problem.uniforms);
    at::Tensor own_token = at::empty_like(token), own_tries = at::empty_like(tries);
    args.token = own_token.mutable_data_ptr<float>();
    args.tries = own_tries.mutable_data_ptr<int64_t>();
    emulated::launch({static_cast<unsigned>(rows)}, {kGaussianThreads}, 0,
                     [&] { gaussian_residual_kernel(args); });
    EXPECT_TRUE(at::equal(own_token, token));
    EXPECT_TRUE(at::equal(own_tries, tries)) << own_tries << tries;
    for (int64_t row = 0; row < rows; ++row) ++(tries[row].item<int64_t>() == 0 ? none : some);
  }
  EXPECT_GT(none, 5);
  EXPECT_GT(some, 5);
}

}  // namespace
}  // namespace lamplighter::test
