#include <gtest/gtest.h>

#include <algorithm>

#include "tests/continuous/toy.h"

// The distribution of single tokens against that of the target, which is known: distances of Kolmogorov and
// Smirnov.
namespace lamplighter::test {
namespace {

constexpr std::int64_t kPositions = 50;
constexpr std::size_t kImages = 2000;
// Of 100,000 samples; above the 0.1 % line, 1.95 / sqrt(n).
constexpr double kNear = 0.0062;

// P(x_0 <= grid point) of a chain, step by step on a grid.
class JointDistribution {
 public:
  explicit JointDistribution(const ToyChain& chain) {
    std::vector<double> density(kPoints);
    for (int k = 0; k < kPoints; ++k) density[static_cast<std::size_t>(k)] = normal(point(k), 0, 1);
    for (int i = 2; i >= 0; --i) density = step(chain, i, density);
    double sum = 0;
    for (const double value : density) cumulative_.push_back(sum += value * kWidth);
    EXPECT_NEAR(sum, 1, 1e-4);
  }

  double at(double x) const {
    const double place = std::clamp((x - kFirst) / kWidth + 0.5, 0.0, kPoints - 1.001);
    const auto k = static_cast<std::size_t>(place);
    return cumulative_[k] +
           (place - static_cast<double>(k) - 1) * (cumulative_[k] - (k > 0 ? cumulative_[k - 1] : 0));
  }

  double distance(std::vector<double> samples) const {
    std::sort(samples.begin(), samples.end());
    double largest = 0;
    const auto n = static_cast<double>(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double value = at(samples[i]), before = static_cast<double>(i) / n;
      largest = std::max({largest, std::abs(value - before), std::abs(value - before - 1 / n)});
    }
    return largest;
  }

 private:
  static constexpr int kPoints = 1600;
  static constexpr double kFirst = -8, kWidth = 0.01;

  static double point(int k) { return kFirst + kWidth * k; }
  static double normal(double x, double mean, double deviation) {
    const double z = (x - mean) / deviation;
    return std::exp(-0.5 * z * z) / (deviation * 2.50662827463100050242);
  }
  static std::vector<double> step(const ToyChain& chain, int i, const std::vector<double>& before) {
    std::vector<double> after(kPoints);
    for (int from = 0; from < kPoints; ++from) {
      const double mass = before[static_cast<std::size_t>(from)] * kWidth;
      if (mass < 1e-14) continue;
      const double mean = chain.mean(i, point(from)), deviation = chain.deviation(i, point(from));
      for (int to = 0; to < kPoints; ++to)
        after[static_cast<std::size_t>(to)] += mass * normal(point(to), mean, deviation);
    }
    return after;
  }

  std::vector<double> cumulative_;
};

struct Sampled {
  std::vector<double> tokens;
  std::int64_t accepted = 0, drafted = 0, proposals = 0, fallbacks = 0;
  double tries_per_draft() const { return static_cast<double>(proposals) / static_cast<double>(verified); }
  std::int64_t verified = 0;
};

Sampled sample(const ToyChain& target, const ToyChain& draft_chain, const MethodOptions& method) {
  const ToyModel model(target), drafter(draft_chain);
  ToyRun run{model, drafter};
  run.shape.positions = kPositions;
  run.method = method;
  Sampled all;
  for (const ContinuousImage& image : sample(run, requests_of(kImages), 500)) {
    const float* latents = image.latents.const_data_ptr<float>();
    all.tokens.insert(all.tokens.end(), latents, latents + kPositions);
    all.proposals += image.statistics.proposals;
    all.fallbacks += image.statistics.fallbacks;
    for (const Cycle& cycle : image.statistics.cycles) {
      all.accepted += cycle.accepted;
      all.verified += std::min(cycle.accepted + 1, std::min(*method.gamma, kPositions - cycle.first));
    }
  }
  return all;
}

ToyChain target_for(char which) {
  return toy_target(which == 'A');
}

class ContinuousDistribution : public ::testing::TestWithParam<char> {};

TEST_P(ContinuousDistribution, OfTheExactRuleIsThatOfTheTarget) {
  const ToyChain target = target_for(GetParam());
  for (const std::int64_t gamma : {1, 20}) {
    const Sampled samples = sample(target, toy_draft(GetParam()), cspd("exact", gamma));
    EXPECT_LT(JointDistribution(target).distance(samples.tokens), kNear) << GetParam() << gamma;
    // One proposal for each draft that is verified, on average: 1 / P(rejected) for those that are rejected.
    EXPECT_NEAR(samples.tries_per_draft(), 1.0, 0.05);
    EXPECT_EQ(samples.fallbacks, 0);
    EXPECT_GT(samples.accepted, 10000);
  }
}

TEST_P(ContinuousDistribution, OfTheDraftIsAnother) {
  EXPECT_GT(JointDistribution(target_for(GetParam()))
                .distance(sample(toy_draft(GetParam()), toy_draft(GetParam()), cspd("exact", 4)).tokens),
            0.03);
}

INSTANTIATE_TEST_SUITE_P(Drafts, ContinuousDistribution, ::testing::Values('A', 'B', 'C'));

// The ratio of the paths' variances does not belong there: where it is not 1, the distribution is another.
// This is also what a wrong rule looks like to the tests above.
TEST(ContinuousDistributionOfThePaper, IsTheTargetsWhereItsRatioOfVariancesIsOne) {
  const auto distance = [](char which, std::int64_t cap) {
    const ToyChain target = target_for(which);
    return JointDistribution(target).distance(
        sample(target, toy_draft(which), cspd("paper", 20, 0, cap)).tokens);
  };
  EXPECT_LT(distance('A', 100), kNear);
  EXPECT_GT(distance('B', 100), 0.025);
  EXPECT_GT(distance('C', 100), 0.009);
}

// A rule without its residual: a plain sample of the target takes the place of a rejected draft.
TEST(ContinuousDistributionOfOneProposal, IsAnother) {
  const Sampled samples = sample(toy_target(), toy_draft('B'), cspd("exact", 20, 0, 1));
  EXPECT_GT(JointDistribution(toy_target()).distance(samples.tokens), 0.01);
}

TEST(ContinuousDistributionOfThePaper, MayRunOutOfProposals) {
  const Sampled samples = sample(toy_target(), toy_draft('C'), cspd("paper", 4, 0, 20));
  EXPECT_GT(samples.fallbacks, static_cast<std::int64_t>(kImages) * kPositions / 5);
}

// Distance of two sets of samples.
double distance(std::vector<double> one, std::vector<double> other) {
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  double largest = 0;
  std::size_t j = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    while (j < other.size() && other[j] <= one[i]) ++j;
    largest = std::max(largest, std::abs(static_cast<double>(i + 1) / static_cast<double>(one.size()) -
                                         static_cast<double>(j) / static_cast<double>(other.size())));
  }
  return largest;
}

// Tokens that depend on those before them: what is discarded after a rejection is sampled again with the same
// random numbers.
std::vector<double> sums(const MethodOptions& method, std::uint64_t seed) {
  ToyChain target = toy_target(), draft_chain = toy_draft('B');
  target.e = 0.9;
  draft_chain.e = 0.6;
  target.of_position = draft_chain.of_position = 0.3;
  const ToyModel model(target), drafter(draft_chain);
  ToyRun run{model, drafter};
  run.shape.positions = 4;
  run.method = method;
  std::vector<double> all;
  for (const ContinuousImage& image : sample(run, requests_of(20000, seed), 2000)) {
    const float* x = image.latents.const_data_ptr<float>();
    // Also what the last two tokens have to do with each other.
    const auto k = [&](std::int64_t sampled) { return static_cast<double>(x[image.position(sampled)]); };
    all.push_back(k(3) + k(2) * k(1));
  }
  return all;
}

TEST(ContinuousSequenceDistribution, OfTheExactRuleIsThatOfTheTarget) {
  const double near = 1.95 * std::sqrt(2.0 / 20000);
  const std::vector<double> alone = sums(passes(4), 1);
  for (const std::int64_t gamma : {1, 3})
    EXPECT_LT(distance(alone, sums(cspd("exact", gamma, 0), 1000000)), near) << gamma;
  EXPECT_GT(distance(alone, sums(cspd("paper", 3, 0), 1000000)), near);
}

}  // namespace
}  // namespace lamplighter::test
