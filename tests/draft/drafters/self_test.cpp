#include "draft/drafters/self.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "tests/decode/toy_methods.h"
#include "tests/draft/method_distribution.h"
#include "tests/draft/wrapped.h"

namespace lamplighter::test {
namespace {

class SelfTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }

  static SyntheticShape shape(bool row_ends = false) {
    SyntheticShape shape = small_shape(row_ends);
    shape.layers = 3;
    return shape;
  }

  static std::int64_t cycles(const Toy& toy, const Method& method) {
    std::int64_t count = 0;
    decode(toy.models(), method, toy.prompts({0, 3, 7, 11}, true), four_requests(1), toy.grid(),
           [&](const Report&) { return ++count > 0; });
    return count;
  }
};

TEST_F(SelfTest, GreedyTokensAreThoseOfAutoregression) {
  for (const bool row_ends : {false, true}) {
    const Toy toy(shape(row_ends));
    const Prompts prompts = toy.prompts({0, 1, 2, 3}, true);
    const at::Tensor expected = decode(toy.models(), {}, prompts, four_requests(0), toy.grid());
    for (const std::int64_t layers : {1, 2, 3}) {
      for (const std::int64_t window : {0, 1, 7}) {
        if (row_ends && window > 0) continue;  // refused by resolve_method
        const Method method = self_method(bushy_tree(), layers, window);
        EXPECT_TRUE(at::equal(decode(toy.models(), method, prompts, four_requests(0), toy.grid()), expected))
            << layers << " layers, window " << window;
      }
    }
  }
}

// All layers over all rows are the target: it keeps whatever it drafted.
TEST_F(SelfTest, TheWholeTargetKeepsAllOfItsDrafts) {
  const Toy toy(shape());
  const Method all = self_method(preset_tree("chain-3"), 3),
               windowed = self_method(preset_tree("chain-3"), 3, 15);
  EXPECT_EQ(cycles(toy, all), 5);  // 19 tokens behind the prompt's, by four
  EXPECT_EQ(cycles(toy, windowed), 5) << "no image has more rows when its last drafts are made";
  EXPECT_GT(cycles(toy, self_method(preset_tree("chain-3"), 3, 1)), 5);
  EXPECT_GT(cycles(toy, self_method(preset_tree("chain-3"), 1)), 5);
}

// Before the image has rows a window hides nothing: what the whole target drafts then is kept.
TEST_F(SelfTest, AWindowLeavesThePromptInSight) {
  SyntheticShape strong = shape();
  strong.weight_scale = 2;
  const Toy toy(strong);
  std::vector<std::int64_t> numbers;
  std::vector<DecodeRequest> all;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    numbers.push_back(toy.target.manifest().prompt->length - 1);  // a prompt of full length
    all.push_back({{}, seed});
  }
  std::int64_t accepted = -1;
  decode(toy.models(), self_method(preset_tree("chain-3"), 3, 1), toy.prompts(numbers, true), all, toy.grid(),
         [&](const Report& report) {
           if (accepted < 0) {
             accepted = 0;
             for (const ImageReport& image : report.images) accepted += image.accepted;
           }
           return true;
         });
  EXPECT_EQ(accepted, 3 * 64);
}

TEST_F(SelfTest, ImagesOfABatchAreThoseSampledAlone) {
  const Toy toy(shape());
  const std::vector<DecodeRequest> all = four_requests(1);
  const Prompts prompts = toy.prompts({0, 1, 2, 3}, true);
  for (const std::int64_t window : {0, 4}) {
    const Method method = self_method(bushy_tree(), 2, window);
    const at::Tensor together = decode(toy.models(), method, prompts, all, toy.grid());
    for (std::int64_t image = 0; image < 4; ++image) {
      const at::Tensor alone = decode(toy.models(), method, toy.prompts({image}, true),
                                      {all[static_cast<std::size_t>(image)]}, toy.grid());
      EXPECT_TRUE(at::equal(alone, together.narrow(0, image, 1))) << window << " " << image;
    }
  }
}

class SelfDistribution : public ::testing::TestWithParam<MethodCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }

  static SyntheticShape shape(bool row_ends) {
    SyntheticShape shape = run_shape(row_ends);
    shape.layers = 2;
    return shape;
  }
};

TEST_P(SelfDistribution, IsThatOfTheTarget) {
  const Toy toy(shape(GetParam().row_ends));
  expect_distribution(toy, toy.models(), GetParam());
}

TEST_P(SelfDistribution, HoldsWhereSlotsAreRefilled) {
  const Toy toy(shape(GetParam().row_ends));
  expect_distribution_of_slots(toy, toy.models(), GetParam());
}

std::vector<MethodCase> self_cases() {
  const Tree siblings = make_tree({{0}, {1}, {0, 0}, {0, 1}});
  return {{"chain", self_method(preset_tree("chain-3"), 1)},
          {"siblings", self_method(siblings, 1)},
          {"window", self_method(siblings, 2, 1)},
          {"layer_and_window", self_method(preset_tree("chain-2"), 1, 2)},
          {"row_ends", self_method(siblings, 1), true},
          {"partly_guided", self_method(siblings, 1), false, 0}};
}

INSTANTIATE_TEST_SUITE_P(Drafts, SelfDistribution, ::testing::ValuesIn(self_cases()),
                         [](const auto& test) { return test.param.name; });

// The pass takes up the rows of the siblings: a classic of rows that are kept.
class Swapped : public Wrapped {
 public:
  using Wrapped::Wrapped;

  Draft draft(const RunState& run) override {
    Draft draft = Wrapped::draft(run);
    draft.partial->residual = draft.partial->residual.index_select(1, at::tensor({0, 2, 1, 4, 3}));
    return draft;
  }
};

std::unique_ptr<DraftMethod> make_swapped(const Method& method, const Models& models) {
  return std::make_unique<Swapped>(make_self(method, models));
}

TEST_F(SelfTest, TheDistributionFindsRowsOfOtherNodes) {
  SyntheticShape two_layers = run_shape();
  two_layers.layers = 2;
  const Toy toy(two_layers);
  Method method = self_method(make_tree({{0}, {1}, {0, 0}, {0, 1}}), 1);
  method.draft_method = &make_swapped;
  const SamplingOptions sampling = run_sampling();
  const SampledDistribution sampled =
      sampled_distribution(toy, toy.models(), method, sampling, distribution_images(std::int64_t{1} << 15));
  EXPECT_FALSE(fits(lossless_distribution(toy, sampling), sampled.counts));
}

}  // namespace
}  // namespace lamplighter::test
