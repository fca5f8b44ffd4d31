#include "decode/parts.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "decode/kept_score.h"
#include "tests/decode/given_distribution.h"
#include "tests/decode/kept_cases.h"

// Images whose given tokens do not all come first: what is generated has the target's distribution given all
// tokens before it.
namespace lamplighter::test {
namespace {

class Parts : public ::testing::TestWithParam<KeptCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

// Positions of 4 x 5 codes that are generated.
using Missing = std::vector<std::int64_t>;
const std::vector<Missing> kMissing{
    {6, 7, 11, 12},                             // a rectangle inside
    {0, 1, 5, 6},                               // in a corner
    {3, 4, 8, 9, 13, 14, 18, 19},               // the right side, to the last code
    {0, 5, 10, 15},                             // one column
    {12},                                       // one code
    {7, 8, 9, 12, 13, 14, 15, 16, 17, 18, 19},  // a rectangle and all behind it
    {5, 6, 7, 8, 9}};                           // a row

// Requests that keep all codes of images int64 [I, T] but some.
std::vector<DecodeRequest> missing(const at::Tensor& images, float temperature) {
  std::vector<DecodeRequest> all;
  for (std::size_t i = 0; i < kMissing.size(); ++i) {
    const auto* codes = images.const_data_ptr<std::int64_t>() + images.size(1) * static_cast<std::int64_t>(i);
    DecodeRequest request{run_sampling(), i, {codes, codes + images.size(1)}};
    for (const std::int64_t position : kMissing[i]) request.kept[static_cast<std::size_t>(position)] = -1;
    request.sampling.temperature = temperature;
    all.push_back(request);
  }
  return all;
}

at::Tensor whole_images(const Toy& toy, float temperature) {
  std::vector<DecodeRequest> all;
  for (std::size_t i = 0; i < kMissing.size(); ++i) {
    all.push_back({run_sampling(), i});
    all.back().sampling.temperature = temperature;
  }
  return continued(toy, {}, all);
}

// Whether the given codes of requests stand where they belong.
bool stay(const at::Tensor& images, const std::vector<DecodeRequest>& requests) {
  bool do_stay = true;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto* codes = images.const_data_ptr<std::int64_t>() + images.size(1) * static_cast<std::int64_t>(i);
    for (std::size_t j = 0; j < requests[i].kept.size(); ++j)
      do_stay = do_stay && (requests[i].kept[j] < 0 || requests[i].kept[j] == codes[j]);
  }
  return do_stay;
}

class GreedyParts : public Parts {};

TEST_P(GreedyParts, TokensBetweenThoseOfAnImageAreItsOwn) {
  for (const bool row_ends : {false, true}) {
    const Toy toy = make_toy(kept_shape(row_ends), GetParam().model);
    const at::Tensor whole = whole_images(toy, 0);
    EXPECT_TRUE(at::equal(continued(toy, GetParam().method, missing(whole, 0)), whole)) << row_ends;
    // Other tokens around them give others: they are read, and stay.
    const std::vector<DecodeRequest> others = missing((whole + 1).remainder(12), 0);
    const at::Tensor changed = continued(toy, {}, others);
    EXPECT_TRUE(stay(changed, others));
    EXPECT_FALSE(at::equal(changed.select(1, 12), whole.select(1, 12)));
    EXPECT_TRUE(at::equal(continued(toy, GetParam().method, others), changed)) << row_ends;
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, GreedyParts, ::testing::ValuesIn(kept_cases(true)), kept_name);

TEST(Autoregression, GoesOnBetweenTokensOfASampledImageAsItWent) {
  at::set_num_threads(1);
  for (const bool row_ends : {false, true}) {
    SyntheticShape shape = kept_shape(row_ends);
    shape.schedule = decaying();
    const Toy toy(shape);
    const at::Tensor whole = whole_images(toy, 0.8F);
    EXPECT_TRUE(at::equal(continued(toy, {}, missing(whole, 0.8F)), whole)) << row_ends;
  }
}

const std::vector<std::vector<std::int32_t>> kGiven{{-1, 2, -1, 4}, {1, -1, 3}, {-1, -1, 0}};

class SampledParts : public Parts {};

TEST_P(SampledParts, TokensFollowTheTargetGivenAllInFront) {
  for (const bool row_ends : {false, true}) {
    const Toy toy = make_toy(run_shape(row_ends), GetParam().model);
    const JointDistribution whole = lossless_distribution(toy, unfiltered());
    for (const std::vector<std::int32_t>& kept : kGiven) {
      const JointDistribution counts = counted_distribution(
          toy, unfiltered(), distribution_images(std::int64_t{1} << 12),
          [&](const Prompts& prompts, std::vector<DecodeRequest> requests) {
            for (DecodeRequest& request : requests) request.kept = kept;
            return decode(toy.models(), GetParam().method, prompts, requests, toy.grid());
          });
      EXPECT_TRUE(fits(sequential(whole, kept), counts)) << row_ends << " " << kept.size();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, SampledParts, ::testing::ValuesIn(kept_cases(false)), kept_name);

// What the test above finds: given tokens change the distribution of those between and behind them, and what
// comes later does not change it.
TEST(SequentialDistribution, DependsOnGivenTokensInFront) {
  const Toy toy(run_shape());
  const JointDistribution whole = lossless_distribution(toy, unfiltered());
  const auto counts_of = [&](const std::vector<std::int32_t>& kept, std::int32_t second, std::int32_t last) {
    JointDistribution counts;
    for (const auto& [tokens, probability] : sequential(whole, kept)) {
      Tokens other = tokens;
      other[1] = second;
      other[3] = last;
      counts[other] = std::round(probability * (1 << 14));
    }
    return counts;
  };
  const JointDistribution expected = sequential(whole, {-1, 2, -1, 4});
  EXPECT_FALSE(fits(expected, counts_of({-1, 3, -1, 4}, 2, 4)));
  EXPECT_TRUE(fits(expected, counts_of({-1, 2, -1, 1}, 2, 4)));
}

TEST(KeptLogProbability, IsThatOfGivenTokensBehindTheFirstNewOne) {
  at::set_num_threads(1);
  for (const bool row_ends : {false, true}) {
    SyntheticShape shape = run_shape(row_ends);
    shape.schedule = decaying();
    const Toy toy(shape);
    const JointDistribution whole = lossless_distribution(toy, unfiltered(1));
    // Scores are of temperature 1 without filters, whatever images are sampled with.
    const DecodeRequest sampled{run_sampling(), 0};
    for (std::vector<std::int32_t> kept : kGiven) {
      DecodeRequest request = sampled;
      request.kept = kept;
      std::vector<std::int32_t> codes{0, 1, 2, 3};
      for (std::size_t i = 0; i < kept.size(); ++i)
        if (kept[i] >= 0) codes[i] = kept[i];
      const double score =
          kept_log_probability(toy.models(), repeated_prompt(toy, 1), request, codes, toy.grid());
      const Tokens tokens(codes.begin(), codes.end());
      EXPECT_NEAR(score, std::log(chance(whole, tokens, kept, true)), 1e-4) << row_ends;
    }
  }
}

// Slots of a run, what the recorder says of parts, and images that are given up between two of them.
TEST(Recorder, CountsPartsOfAnImage) {
  at::set_num_threads(1);
  const Toy toy(kept_shape(true));
  const at::Tensor whole = whole_images(toy, 0);
  const std::vector<RecordedImage> records = recorded(toy, missing(whole, 0));
  const std::vector<std::int64_t> parts{2, 2, 4, 4, 1, 2, 1};
  ASSERT_EQ(records.size(), parts.size());
  for (std::size_t at = 0; at < records.size(); ++at) {
    const RecordedImage& record = records[at];
    const Statistics& statistics = record.statistics;
    const auto* codes = whole.const_data_ptr<std::int64_t>() + static_cast<std::int64_t>(at) * 20;
    EXPECT_THAT(record.codes, ::testing::ElementsAreArray(codes, codes + 20)) << at;
    EXPECT_EQ(statistics.tokens, static_cast<std::int64_t>(kMissing[at].size()));
    EXPECT_EQ(statistics.kept, 20 - statistics.tokens);
    EXPECT_EQ(statistics.prefills, parts[at]);
    EXPECT_EQ(statistics.target_passes, parts[at] + static_cast<std::int64_t>(statistics.cycles.size()));
    const std::vector<std::int64_t> order(statistics.order.begin() + statistics.kept, statistics.order.end());
    EXPECT_EQ(order, kMissing[at]);
  }
}

TEST(Run, GivesUpAnImageBetweenTwoParts) {
  at::set_num_threads(1);
  const Toy toy(kept_shape(false));
  const Grid grid = toy.grid();
  const at::Tensor whole = whole_images(toy, 0);
  const std::vector<DecodeRequest> all = missing(whole, 0);
  const Method method;
  DecodeRun run(toy.models(), method, two_slots(toy, grid));
  std::optional<Report> report = run.step({toy.prompts({2, 3}, true), {all[2], all[3]}});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->images[1].steps, 5);  // its first part is complete
  EXPECT_EQ(run.free_slots(), 0);
  run.drop(1);
  EXPECT_EQ(run.free_slots(), 1);
  std::vector<std::int64_t> codes;
  while (!run.is_idle()) {
    report = run.step();
    for (const ImageReport& image : report->images) {
      EXPECT_EQ(image.image, 0);
      if (image.first) codes.push_back(image.last_token);
      codes.insert(codes.end(), image.codes.begin(), image.codes.end());
    }
  }
  EXPECT_EQ(codes.size(), 6U);  // the other one's, behind its first two
}

}  // namespace
}  // namespace lamplighter::test
