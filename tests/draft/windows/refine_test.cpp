#include "draft/windows/refine.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/decode/toy_methods.h"
#include "tests/draft/drafters/random_drafter.h"
#include "tests/draft/method_distribution.h"

namespace lamplighter::test {
namespace {

Method refined(const char* chain, const std::string& rule = "exact", bool top = false) {
  Method method = heads_method("refine", preset_tree(chain), rule, top);
  method.window.keep = false;
  return method;
}

Method kept(const char* chain) {
  Method method = refined(chain);
  method.window.keep = true;
  return method;
}

class RefineTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

TEST_F(RefineTest, GreedyTokensAreThoseOfAutoregression) {
  for (const bool row_ends : {false, true}) {
    const Guessed guessed(small_shape(row_ends), "refine");
    const Prompts prompts = guessed.toy.prompts({0, 1, 2, 3}, true);
    const Grid grid = guessed.toy.grid();
    const at::Tensor expected = decode(guessed.models(), {}, prompts, four_requests(0), grid);
    for (const char* chain : {"chain-1", "chain-3", "chain-7"})
      EXPECT_TRUE(at::equal(
          decode(guessed.models(), refined(chain, "exact", true), prompts, four_requests(0), grid), expected))
          << chain;
  }
}

TEST_F(RefineTest, ImagesOfABatchAreThoseSampledAlone) {
  for (const bool row_ends : {false, true}) {
    const Guessed guessed(small_shape(row_ends), "refine");
    const Grid grid = guessed.toy.grid();
    for (const Method& method : {refined("chain-4"), kept("chain-4"), adapting(kept("chain-4"))}) {
      const at::Tensor together =
          decode(guessed.models(), method, guessed.toy.prompts({0, 1, 2, 3}, true), four_requests(1), grid);
      for (std::int64_t image = 0; image < 4; ++image) {
        const at::Tensor alone = decode(guessed.models(), method, guessed.toy.prompts({image}, true),
                                        {four_requests(1)[static_cast<std::size_t>(image)]}, grid);
        EXPECT_TRUE(at::equal(alone, together.narrow(0, image, 1))) << image;
      }
    }
  }
}

class RefineDistribution : public ::testing::TestWithParam<MethodCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

TEST_P(RefineDistribution, IsThatOfTheTarget) {
  const Guessed guessed(run_shape(GetParam().row_ends), "refine");
  expect_distribution(guessed.toy, guessed.models(), GetParam());
}

TEST_P(RefineDistribution, HoldsWhereSlotsAreRefilled) {
  const Guessed guessed(run_shape(GetParam().row_ends), "refine");
  expect_distribution_of_slots(guessed.toy, guessed.models(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Chains, RefineDistribution,
                         ::testing::Values(MethodCase{"chain", refined("chain-3")},
                                           MethodCase{"long", refined("chain-7")},
                                           MethodCase{"block", refined("chain-3", "block")},
                                           MethodCase{"top", refined("chain-3", "exact", true)},
                                           MethodCase{"row_ends", refined("chain-3"), true},
                                           MethodCase{"partly_guided", refined("chain-3"), false, 0},
                                           MethodCase{"adapting", adapting(refined("chain-3"))},
                                           MethodCase{"adapting_kept", adapting(kept("chain-3"))},
                                           MethodCase{"adapting_row_ends", adapting(kept("chain-3")), true},
                                           MethodCase{"kept", kept("chain-3")},
                                           MethodCase{"kept_long", kept("chain-7")},
                                           MethodCase{"kept_row_ends", kept("chain-3"), true},
                                           MethodCase{"kept_partly_guided", kept("chain-3"), false, 0}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lamplighter::test
