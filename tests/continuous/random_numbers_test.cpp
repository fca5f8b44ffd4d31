#include "continuous/random_numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

namespace lamplighter::test {
namespace {

// Mean, variance, and the fourth moment of normals.
void expect_normal(const std::vector<float>& values) {
  double sum = 0, squares = 0, fourth = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
    fourth += std::pow(static_cast<double>(value), 4);
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 4 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 4 * std::sqrt(96 / n));
}

TEST(RandomNumbers, NoiseIsNormal) {
  const RandomNumbers samples(5, 16, 1000);
  std::vector<float> noise(16000);
  samples.noise(3, noise.data());
  expect_normal(noise);
  std::vector<float> proposals(16000);
  std::vector<double> uniforms(1000);
  samples.proposals(3, 0, 1000, proposals.data(), uniforms.data());
  expect_normal(proposals);
  EXPECT_NEAR(std::accumulate(uniforms.begin(), uniforms.end(), 0.0) / 1000, 0.5, 0.04);
  // What is sampled for different purposes has nothing in common.
  std::set<float> all(noise.begin(), noise.end());
  all.insert(proposals.begin(), proposals.end());
  EXPECT_GT(all.size(), 31900U);
}

TEST(RandomNumbers, ChunksOfProposalsAreParts) {
  const RandomNumbers samples(6, 5, 4);
  std::vector<float> all(5 * 20), part(5 * 7);
  std::vector<double> uniforms(20), some(7);
  samples.proposals(9, 0, 20, all.data(), uniforms.data());
  samples.proposals(9, 8, 7, part.data(), some.data());
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 40));
  EXPECT_TRUE(std::equal(some.begin(), some.end(), uniforms.begin() + 8));
}

TEST(RandomNumbers, DependOnSeedAndPosition) {
  const auto first = [](std::uint64_t seed, std::int64_t position) {
    std::vector<float> out(4);
    RandomNumbers(seed, 4, 1).start(position, out.data());
    return out;
  };
  EXPECT_EQ(first(1, 2), first(1, 2));
  EXPECT_NE(first(1, 2), first(1, 3));
  EXPECT_NE(first(1, 2), first(2, 2));
  EXPECT_NE(RandomNumbers(1, 4, 1).verification(2), RandomNumbers(1, 4, 1).verification(3));
}

TEST(RandomNumbers, OrdersArePermutationsAllAlikeOften) {
  std::vector<int> counts(6);
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const std::vector<std::int64_t> order = RandomNumbers(seed, 1, 1).order(3);
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 3U);
    ++counts[static_cast<std::size_t>(2 * order[0] + (order[1] > order[2] ? 1 : 0))];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 130);
  EXPECT_EQ(RandomNumbers(3, 1, 1).order(1), std::vector<std::int64_t>{0});
}

}  // namespace
}  // namespace lamplighter::test
