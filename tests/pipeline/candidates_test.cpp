#include "pipeline/scheduler/candidates.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "decode/kept_score.h"
#include "tests/decode/given_distribution.h"

// One candidate of several is picked by the probability of the given tokens that come later.
namespace lamplighter::test {
namespace {

TEST(PickedCandidates, AreTheLikeliestOrSampledByProbability) {
  const std::vector<double> scores{-700.0 + std::log(0.2), -700.0 + std::log(0.5), -700.0 + std::log(0.3)};
  JointDistribution counts;
  for (std::uint64_t seed = 0; seed < 4096; ++seed) {
    EXPECT_EQ(pick_candidate(scores, "best", seed), 1U);
    counts[{static_cast<std::int64_t>(pick_candidate(scores, "sample", seed))}] += 1;
  }
  EXPECT_TRUE(fits({{{0}, 0.2}, {{1}, 0.5}, {{2}, 0.3}}, counts));
  const double never = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(pick_candidate({never, -3, never}, "sample", 5), 1U);
  EXPECT_EQ(pick_candidate({never, never}, "sample", 5), 0U);
  EXPECT_EQ(candidate_seed(9, 0), 9U);
  EXPECT_NE(candidate_seed(9, 1), candidate_seed(10, 1));
  EXPECT_NE(candidate_seed(9, 1), candidate_seed(9, 2));
}

double distance(const JointDistribution& one, const JointDistribution& other) {
  double sum = 0;
  for (const auto& [tokens, probability] : one) {
    const auto found = other.find(tokens);
    sum += std::abs(probability - (found == other.end() ? 0 : found->second));
  }
  return sum / 2;
}

// With many candidates, one that is sampled by probability knows what comes later.
TEST(PickedCandidates, ApproachTheDistributionGivenAllTokens) {
  at::set_num_threads(1);
  constexpr std::size_t kCandidates = 16, kImages = 512;
  const Toy toy(run_shape());
  const std::vector<std::int32_t> kept{-1, 2, -1, 4};
  const JointDistribution whole = lossless_distribution(toy, unfiltered(1));
  const JointDistribution blind = sequential(whole, kept);
  JointDistribution seeing;
  double sum = 0;
  for (const auto& [tokens, probability] : blind) sum += seeing[tokens] = whole.at(tokens);
  for (auto& [tokens, probability] : seeing) probability /= sum;
  std::map<std::vector<std::int32_t>, double> scores;
  std::vector<std::vector<std::int32_t>> images;
  counted_distribution(
      toy, unfiltered(1), kCandidates * kImages,
      [&](const Prompts& prompts, std::vector<DecodeRequest> requests) {
        for (DecodeRequest& request : requests) request.kept = kept;
        const at::Tensor codes =
            decode(toy.models(), {}, prompts, requests, toy.grid()).to(at::kInt).contiguous();
        for (std::int64_t i = 0; i < codes.size(0); ++i) {
          const auto* row = codes.const_data_ptr<std::int32_t>() + 4 * i;
          images.emplace_back(row, row + 4);
        }
        return codes.to(at::kLong);
      });
  DecodeRequest request{unfiltered(1), 0, kept};
  JointDistribution picked;
  for (std::size_t image = 0; image < kImages; ++image) {
    std::vector<double> own;
    for (std::size_t i = 0; i < kCandidates; ++i) {
      const std::vector<std::int32_t>& codes = images[image * kCandidates + i];
      const auto [score, is_new] = scores.try_emplace(codes, 0.0);
      if (is_new)
        score->second =
            kept_log_probability(toy.models(), repeated_prompt(toy, 1), request, codes, toy.grid());
      own.push_back(score->second);
    }
    const auto& codes = images[image * kCandidates + pick_candidate(own, "sample", image)];
    picked[Tokens(codes.begin(), codes.end())] += 1.0 / kImages;
  }
  EXPECT_GT(distance(seeing, blind), 0.1);
  EXPECT_LT(distance(seeing, picked), distance(seeing, blind) / 2);
}

}  // namespace
}  // namespace lamplighter::test
