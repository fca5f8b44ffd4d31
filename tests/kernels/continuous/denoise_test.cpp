#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/continuous/denoise_problem.h"

namespace lamplighter::test {
namespace {

using ::testing::HasSubstr;

class DenoiseTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (limit_isa(GetParam()) != GetParam()) GTEST_SKIP() << "not on this CPU";
  }
  void TearDown() override { limit_isa(kBestIsa); }

  std::mt19937 rng_{43};
};

bool same(const Denoised& a, const Denoised& b) {
  return same_bits(a.mean, b.mean) && same_bits(a.deviation, b.deviation) && same_bits(a.sums, b.sums);
}

void expect_reference(const DenoiseProblem& problem) {
  const Denoised got = problem.run(), exact = problem.reference(at::kDouble),
                 plain = problem.reference(at::kFloat);
  EXPECT_EQ(got.mean.scalar_type(), at::kFloat);
  EXPECT_EQ(got.sums.scalar_type(), at::kDouble);
  EXPECT_TRUE(as_near(got.mean, exact.mean, plain.mean));
  EXPECT_TRUE(as_near(got.deviation, exact.deviation, plain.deviation));
  EXPECT_TRUE(as_near(got.sums, exact.sums, plain.sums));
}

TEST_P(DenoiseTest, TheChainIsThatOfTheFormulas) {
  for (int trial = 0; trial < 24; ++trial) {
    SCOPED_TRACE(trial);
    expect_reference({rng_,
                      {pick(rng_, 1, 9), pick(rng_, 1, 40), pick(rng_, 1, 20), pick(rng_, 2, 70),
                       pick(rng_, 0, 4), pick(rng_, 1, 12), trial % 2 == 0}});
  }
}

TEST_P(DenoiseTest, SmallAndLargeChains) {
  expect_reference({rng_, {1, 16, 16, 32, 1, 2, false}});
  expect_reference({rng_, {1, 16, 3, 31, 1, 2, true}});
  expect_reference({rng_, {70, 5, 2, 9, 1, 3, true}});   // two parts of tokens
  expect_reference({rng_, {40, 5, 2, 17, 2, 3, true}});  // more rows than share the weights
  expect_reference({rng_, {3, 24, 16, 160, 3, 25, true}});
}

TEST_P(DenoiseTest, TokensAreIndependent) {
  for (const bool guided : {false, true}) {
    const DenoiseProblem problem(rng_, {130, 12, 5, 35, 2, 4, guided});
    const Denoised all = problem.run();
    for (const int64_t token : {0, 1, 63, 64, 65, 129}) {
      const Denoised alone = problem.part(token, 1).run();
      EXPECT_TRUE(same(alone, {all.mean.narrow(0, token, 1), all.deviation.narrow(0, token, 1),
                               all.sums.narrow(0, token, 1)}))
          << token;
    }
  }
}

TEST_P(DenoiseTest, TemperatureZeroKnowsNoNoise) {
  DenoiseProblem problem(rng_, {4, 12, 5, 35, 2, 4, true});
  problem.temperature[1] = 0;
  const Denoised one = problem.run();
  problem.noise = -problem.noise;
  const Denoised other = problem.run();
  EXPECT_TRUE(same_bits(one.mean[1], other.mean[1]));
  EXPECT_EQ(one.deviation[1].abs().max().item<float>(), 0);
  EXPECT_FALSE(same_bits(one.mean[0], other.mean[0]));
}

TEST_P(DenoiseTest, NoTokens) {
  const Denoised none = DenoiseProblem(rng_, {0, 12, 5, 16, 1, 4, false}).run();
  EXPECT_EQ(none.mean.sizes(), at::IntArrayRef({0, 5}));
  EXPECT_EQ(none.sums.scalar_type(), at::kDouble);
}

TEST_P(DenoiseTest, OtherShapesAreErrors) {
  const DenoiseProblem good(rng_, {2, 12, 5, 16, 1, 4, true});
  const auto expect_message = [&](auto change, const char* message) {
    DenoiseProblem problem = good;
    change(problem);
    EXPECT_THAT(message_of([&] { problem.run(); }), HasSubstr(message));
  };
  expect_message([](auto& p) { p.noise = p.noise.narrow(1, 0, 3).contiguous(); },
                 "denoise: noise has shape [2, 3, 5], expected [2, 4, 5]");
  expect_message([](auto& p) { p.unconditional = p.unconditional.narrow(0, 0, 1); },
                 "denoise: unconditional has shape [1, 12], expected [2, 12]");
  expect_message([](auto& p) { p.tables = p.tables.narrow(0, 0, 3); },
                 "denoise: tables has shape [3, 6], expected [4, 6]");
  expect_message([](auto& p) { p.scale = p.scale.to(at::kDouble); }, "denoise: scale has dtype Double");
  expect_message([](auto& p) { p.norms.pop_back(); },
                 "denoise: got 6 weights, 6 biases and 1 tensors of norms, expected 4 + 2 B");
  expect_message([](auto& p) { p.weights[2] = p.weights[2].narrow(0, 0, 64); },
                 "denoise: a packed weight has shape [4, 16, 16], expected [5, 16, 16]");
  expect_message([](auto& p) { p.times = p.times.narrow(0, 0, 0); }, "expected no empty dimension");
}

INSTANTIATE_TEST_SUITE_P(, DenoiseTest, instruction_sets(),
                         [](const auto& test) { return std::string(isa_name(test.param)); });

}  // namespace
}  // namespace lamplighter::test
