#include "draft/lookup/ngram.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "base/json.h"
#include "tests/decode/loop_distribution.h"
#include "tests/decode/toy_methods.h"

namespace lamplighter::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::int64_t> lookup(const std::vector<std::int64_t>& tokens, std::int64_t longest,
                                 std::int64_t count) {
  return prompt_lookup(tokens.data(), static_cast<std::int64_t>(tokens.size()), longest, count);
}

// Results of the published function.
TEST(PromptLookup, DraftsWhatWasRecorded) {
  const std::string path =
      std::string(LAMPLIGHTER_SOURCE_DIR) + "/tests/golden/cases/ngram/prompt_lookup/case.json";
  const Json recorded = parse_json(read_file(path), path, ExitCode::input);
  std::vector<std::int64_t> tokens;
  std::size_t proposals = 0;
  for (const Json& test : recorded.at("cases")) {
    if (!test.at("tokens").is_null()) tokens = test.at("tokens").get<std::vector<std::int64_t>>();
    const auto expected = test.at("proposal").get<std::vector<std::int64_t>>();
    EXPECT_EQ(
        lookup(tokens, test.at("max_ngram").get<std::int64_t>(), test.at("predict").get<std::int64_t>()),
        expected)
        << "sequence " << test.at("sequence");
    proposals += expected.empty() ? 0 : 1;
  }
  EXPECT_GT(proposals, 40U);
}

TEST(PromptLookup, PrefersLongRunsThenEarlyPlaces) {
  EXPECT_THAT(lookup({1, 2, 7, 7, 2, 8, 8, 1, 2}, 3, 2), ElementsAre(7, 7));
  EXPECT_THAT(lookup({1, 2, 7, 7, 2, 8, 8, 3, 2}, 3, 2), ElementsAre(7, 7));
  EXPECT_THAT(lookup({1, 2, 3, 4}, 3, 1), IsEmpty());
  EXPECT_THAT(lookup({5, 5}, 3, 1), IsEmpty()) << "what follows is the pattern itself";
}

class NgramTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }

  static SyntheticShape shape() {
    SyntheticShape shape;
    shape.vocabulary = 4;
    shape.rows = 4;
    shape.columns = 5;
    return shape;
  }

  static Method method() {
    Method method = static_method(preset_tree("chain-3"), "exact", true);
    method.draft_method = &make_ngram;
    return method;
  }

  // The chain that is drafted behind these codes.
  std::vector<std::int64_t> drafted(const std::vector<std::int64_t>& codes) const {
    const c10::InferenceMode inference;
    const Prompts prompts = toy_.prompts({0}, false);
    DecodeState state = make_state(toy_.models(), method(), prompts, {{SamplingOptions{}, 1}}, toy_.grid());
    const auto count = static_cast<std::int64_t>(codes.size());
    state.run.counters.codes.narrow(1, 0, count).copy_(at::tensor(codes).unsqueeze(0));
    state.run.counters.steps.fill_(count);
    const at::Tensor tokens = draft(state).tokens.contiguous();
    return {tokens.const_data_ptr<std::int64_t>(), tokens.const_data_ptr<std::int64_t>() + tokens.numel()};
  }

  const Toy toy_{shape()};
};

TEST_F(NgramTest, DraftsWhatFollowedTheLastCodes) {
  EXPECT_THAT(drafted({0, 1, 2, 3, 3, 0, 1}), ElementsAre(1, 2, 3, 3));
}

TEST_F(NgramTest, DraftsTheRowAboveWhereNothingIsFound) {
  EXPECT_THAT(drafted({0, 1, 2, 1, 0, 3}), ElementsAre(3, 1, 2, 1));
  EXPECT_THAT(drafted({0, 1, 2, 3}), ElementsAre(3, -1, -1, -1)) << "there is no row above";
}

TEST_F(NgramTest, GreedyTokensAreThoseOfAutoregression) {
  std::vector<DecodeRequest> requests;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    requests.push_back({});
    requests.back().sampling.temperature = 0;
    requests.back().seed = seed;
  }
  const Prompts prompts = toy_.prompts({0, 1, 2, 3}, false);
  std::int64_t cycles = 0;
  const at::Tensor codes = decode(toy_.models(), method(), prompts, requests, toy_.grid(),
                                  [&](const Report&) { return ++cycles > 0; });
  EXPECT_TRUE(at::equal(codes, decode(toy_.models(), {}, prompts, requests, toy_.grid())));
  EXPECT_LT(cycles, toy_.grid().tokens() - 1);
}

TEST_F(NgramTest, ImagesFollowTheDistributionOfTheTarget) {
  const Toy toy(run_shape());
  Method chain = method();
  chain.tree = preset_tree("chain-2");
  std::int64_t accepted = 0;
  const JointDistribution counts = counted_distribution(
      toy, run_sampling(), distribution_images(std::int64_t{1} << 15),
      [&](const Prompts& prompts, const auto& requests) {
        return decode(toy.models(), chain, prompts, requests, toy.grid(), [&](const Report& report) {
          for (const ImageReport& image : report.images) accepted += image.accepted;
          return true;
        });
      });
  EXPECT_GT(accepted, std::int64_t{1} << 12);
  EXPECT_TRUE(fits(lossless_distribution(toy, run_sampling()), counts));
}

// Where rows end with a token, and where images take each other's slots.
TEST_F(NgramTest, KeepsTheDistributionWhereSlotsAreRefilled) {
  const Toy toy(run_shape(true));
  Method chain = method();
  chain.tree = preset_tree("chain-3");
  EXPECT_TRUE(fits(lossless_distribution(toy, run_sampling()),
                   distribution_of_slots(toy, chain, run_sampling(), distribution_images(1 << 14), 48)));
}

}  // namespace
}  // namespace lamplighter::test
