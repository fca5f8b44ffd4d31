#include "decode/kept.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/decode/kept_cases.h"

// Images whose first tokens are given: the rest has the target's distribution conditioned on them.
namespace lamplighter::test {
namespace {

class Kept : public ::testing::TestWithParam<KeptCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

// Requests that keep the first codes of images int64 [I, T]: other numbers of them side by side, one none.
std::vector<DecodeRequest> keeping(const at::Tensor& images, const std::vector<std::int64_t>& counts,
                                   float temperature) {
  std::vector<DecodeRequest> all;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto* codes = images.const_data_ptr<std::int64_t>() + images.size(1) * static_cast<std::int64_t>(i);
    DecodeRequest request{run_sampling(), i, {codes, codes + counts[i]}};
    request.sampling.temperature = temperature;
    all.push_back(request);
  }
  return all;
}

// Whole rows of 5 codes among them, and all but one.
const std::vector<std::int64_t> kCounts{1, 5, 0, 7, 10, 15, 19};
const std::vector<std::int64_t> kNone{0, 0, 0, 0, 0, 0, 0};

class GreedyKept : public Kept {};

TEST_P(GreedyKept, TokensBehindThoseOfAnImageAreItsOwn) {
  for (const bool row_ends : {false, true}) {
    const Toy toy = make_toy(kept_shape(row_ends), GetParam().model);
    const at::Tensor whole = continued(toy, {}, keeping(at::zeros({7, 20}, at::kLong), kNone, 0));
    EXPECT_TRUE(at::equal(continued(toy, GetParam().method, keeping(whole, kCounts, 0)), whole)) << row_ends;
    // Other tokens in front give another image: they are read.
    const at::Tensor others = (whole + 1).remainder(12);
    const at::Tensor changed = continued(toy, {}, keeping(others, kCounts, 0));
    EXPECT_FALSE(at::equal(changed.slice(1, 19), whole.slice(1, 19)));
    EXPECT_TRUE(at::equal(continued(toy, GetParam().method, keeping(others, kCounts, 0)), changed))
        << row_ends;
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, GreedyKept, ::testing::ValuesIn(kept_cases(true)), kept_name);

// Random numbers are counted by tokens, whoever gave those before.
TEST(Autoregression, ContinuesASampledImageAsItWent) {
  at::set_num_threads(1);
  for (const bool row_ends : {false, true}) {
    SyntheticShape shape = kept_shape(row_ends);
    shape.schedule = decaying();
    const Toy toy(shape);
    const at::Tensor whole = continued(toy, {}, keeping(at::zeros({7, 20}, at::kLong), kNone, 0.8F));
    EXPECT_TRUE(at::equal(continued(toy, {}, keeping(whole, kCounts, 0.8F)), whole)) << row_ends;
  }
}

// The distribution of whole images that begin with these tokens.
JointDistribution given(const JointDistribution& whole, const std::vector<std::int32_t>& kept) {
  JointDistribution some;
  double sum = 0;
  for (const auto& [tokens, probability] : whole) {
    if (!std::equal(kept.begin(), kept.end(), tokens.begin())) continue;
    some[tokens] = probability;
    sum += probability;
  }
  for (auto& [tokens, probability] : some) probability /= sum;
  return some;
}

// The first codes of the likeliest image: top-k makes some beginnings impossible.
std::vector<std::int32_t> likeliest(const JointDistribution& whole, std::size_t count) {
  const auto most = std::max_element(whole.begin(), whole.end(), [](const auto& one, const auto& other) {
    return one.second < other.second;
  });
  return {most->first.begin(), most->first.begin() + static_cast<std::ptrdiff_t>(count)};
}

class SampledKept : public Kept {};

TEST_P(SampledKept, TokensFollowTheTargetGivenThoseInFront) {
  for (const bool row_ends : {false, true}) {
    const Toy toy = make_toy(run_shape(row_ends), GetParam().model);
    const JointDistribution whole = lossless_distribution(toy, run_sampling());
    for (const std::size_t count : {1, 2}) {
      const std::vector<std::int32_t> first = likeliest(whole, count);
      ASSERT_FALSE(given(whole, first).empty());
      const JointDistribution counts = counted_distribution(
          toy, run_sampling(), distribution_images(std::int64_t{1} << 13),
          [&](const Prompts& prompts, std::vector<DecodeRequest> requests) {
            for (DecodeRequest& request : requests) request.kept = first;
            return decode(toy.models(), GetParam().method, prompts, requests, toy.grid());
          });
      EXPECT_TRUE(fits(given(whole, first), counts)) << row_ends << " " << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, SampledKept, ::testing::ValuesIn(kept_cases(false)), kept_name);

// What the test above finds: the tokens in front change the distribution of those behind.
TEST(LosslessDistribution, DependsOnKeptTokens) {
  const Toy toy(run_shape());
  const JointDistribution whole = lossless_distribution(toy, run_sampling());
  JointDistribution other;
  for (const auto& [tokens, probability] : given(whole, {2})) {
    Tokens behind_another = tokens;
    behind_another.front() = 3;
    other[behind_another] = std::round(probability * (1 << 14));
  }
  EXPECT_FALSE(fits(given(whole, {3}), other));
}

// Slots of a run, and what the recorder says of an image that continues.
TEST(Recorder, CountsKeptTokensApart) {
  at::set_num_threads(1);
  const Toy toy(kept_shape(true));
  const at::Tensor whole = continued(toy, {}, keeping(at::zeros({7, 20}, at::kLong), kNone, 0));
  const std::vector<RecordedImage> records = recorded(toy, keeping(whole, kCounts, 0));
  for (std::int64_t image = 0; image < 7; ++image) {
    const RecordedImage& record = records[static_cast<std::size_t>(image)];
    const std::int64_t kept = kCounts[static_cast<std::size_t>(image)];
    const auto* codes = whole.const_data_ptr<std::int64_t>() + image * 20;
    EXPECT_THAT(record.codes, ::testing::ElementsAreArray(codes, codes + 20)) << image;
    EXPECT_EQ(record.statistics.kept, kept);
    EXPECT_EQ(record.statistics.tokens, 20 - kept);
    EXPECT_EQ(record.statistics.order.size(), 20U);
    for (const Cycle& cycle : record.statistics.cycles) EXPECT_GT(cycle.first, kept);
  }
}

}  // namespace
}  // namespace lamplighter::test
