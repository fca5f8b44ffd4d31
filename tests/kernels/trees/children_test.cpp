#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "base/philox.h"
#include "kernels/common/numbers.h"
#include "kernels/ops.h"
#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/common/operators.h"

namespace lamplighter::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kNone = -1;

struct SampledRow {
  at::Tensor tokens, conditional;
};

// seeds 40, 41, ..; steps 3, 4, ..; nodes 0, 1, ...
SampledRow sample_rows(const at::Tensor& probabilities, int64_t count, bool sampled = true,
                       int64_t first_node = 0) {
  const auto rising = [](int64_t size, int64_t first) {
    return integers({size}, [=](int64_t i) { return first + i; });
  };
  const int64_t images = probabilities.size(0);
  const auto [tokens, conditional] = ops::sample_children(
      probabilities,
      {rising(images, 40), rising(images, 3), rising(probabilities.size(1), first_node), count, sampled});
  return {tokens, conditional};
}

template <class T>
std::vector<T> values(const at::Tensor& tensor) {
  const T* p = tensor.const_data_ptr<T>();
  return {p, p + tensor.numel()};
}

at::Tensor one_row(const std::vector<double>& p) {
  return at::tensor(p).to(at::kFloat).reshape({1, 1, static_cast<int64_t>(p.size())});
}

// Random distributions; `kept` > 0: all but about `kept` tokens have probability 0.
at::Tensor distributions(std::mt19937& rng, at::IntArrayRef sizes, int64_t kept, float spread) {
  at::Tensor weights = random_tensor(rng, sizes, at::kFloat, spread).exp();
  if (kept > 0) {
    weights *= integers(sizes, [&](int64_t) { return pick(rng, 1, sizes.back()) <= kept ? 1 : 0; });
  }
  return weights / weights.sum(-1, true).clamp_min(1e-30);
}

// A race by the C library's logarithm and a sort.
std::vector<int64_t> reference(const float* p, int64_t vocabulary, int64_t count, uint64_t seed,
                               uint32_t step, uint32_t node) {
  std::vector<std::pair<double, int64_t>> finish;
  for (int64_t x = 0; x < vocabulary; ++x) {
    if (!(p[x] > 0)) continue;
    const uint32_t word = philox4x32({{step, 2, node, static_cast<uint32_t>(x)}}, static_cast<uint32_t>(seed),
                                     static_cast<uint32_t>(seed >> 32))
                              .word[0];
    finish.emplace_back(-std::log1p(-(word + 0.5) * 0x1p-32) / static_cast<double>(p[x]), x);
  }
  std::sort(finish.begin(), finish.end());
  std::vector<int64_t> tokens(static_cast<size_t>(count), kNone);
  for (size_t i = 0; i < tokens.size() && i < finish.size(); ++i) tokens[i] = finish[i].second;
  return tokens;
}

class ChildrenTest : public KernelTest {};

TEST_P(ChildrenTest, AreTheWinnersOfTheRace) {
  for (int trial = 0; trial < 120; ++trial) {
    const int64_t vocabulary = trial < 40 ? trial + 1 : pick(rng_, 40, 9000);
    const int64_t count = pick(rng_, 1, 12), images = pick(rng_, 1, 2), width = pick(rng_, 1, 3);
    const at::Tensor p =
        distributions(rng_, {images, width, vocabulary}, trial % 3 == 0 ? 0 : pick(rng_, 1, vocabulary),
                      trial % 2 == 0 ? 1 : 3);
    const SampledRow got = sample_rows(p, count, true, 5);
    ASSERT_THAT(got.tokens.sizes().vec(), ElementsAre(images, width, count));
    for (int64_t image = 0; image < images; ++image) {
      for (int64_t node = 0; node < width; ++node) {
        EXPECT_EQ(values<int64_t>(got.tokens[image][node].contiguous()),
                  reference(p[image][node].const_data_ptr<float>(), vocabulary, count,
                            static_cast<uint64_t>(40 + image), static_cast<uint32_t>(3 + image),
                            static_cast<uint32_t>(5 + node)))
            << "trial " << trial;
      }
    }
  }
}

// Against sums over what is left in double precision, with masses down to 1e-12.
TEST_P(ChildrenTest, ConditionalIsTheShareOfWhatIsLeft) {
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t vocabulary = pick(rng_, 1, 3000), count = pick(rng_, 1, 8);
    at::Tensor p = distributions(rng_, {1, 1, vocabulary}, trial % 2 == 0 ? 0 : 9, 2);
    if (trial % 3 == 0) {
      p *= 1e-12;
      p.select(2, 0).fill_(1);
    }
    const SampledRow got = sample_rows(p, count);
    std::vector<float> left = values<float>(p);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t token = got.tokens[0][0][i].item<int64_t>();
      const float conditional = got.conditional[0][0][i].item<float>();
      if (token == kNone) {
        EXPECT_EQ(conditional, 0);
        continue;
      }
      double mass = 0;
      for (const float q : left) mass += static_cast<double>(q);
      float& mine = left[static_cast<size_t>(token)];
      EXPECT_NEAR(conditional * mass / static_cast<double>(mine), 1, 3e-7) << "trial " << trial;
      mine = 0;
    }
  }
}

TEST_P(ChildrenTest, EndWhenNoMassIsLeft) {
  const SampledRow two = sample_rows(one_row({0, 0.25, 0, 0, 0.75, 0}), 4);
  std::vector<int64_t> tokens = values<int64_t>(two.tokens);
  std::sort(tokens.begin(), tokens.begin() + 2);
  EXPECT_THAT(tokens, ElementsAre(1, 4, kNone, kNone));
  EXPECT_THAT(values<float>(two.conditional).at(1), 1);
  EXPECT_THAT(values<float>(two.conditional).at(2), 0);
  for (const bool sampled : {true, false}) {
    const SampledRow none = sample_rows(at::zeros({2, 3, 50}), 2, sampled);
    EXPECT_THAT(values<int64_t>(none.tokens), Each(kNone));
    EXPECT_THAT(values<float>(none.conditional), Each(0));
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    const SampledRow bad = sample_rows(one_row({std::nan(""), -1, 0.5, kInfinite}), 2, sampled);
    EXPECT_THAT(values<int64_t>(bad.tokens), ElementsAre(2, kNone));
  }
  EXPECT_THAT(values<int64_t>(sample_rows(one_row({0, 1e-45, 0}), 2).tokens), ElementsAre(1, kNone));
}

TEST_P(ChildrenTest, WithoutSamplingAreTheMostProbableInOrder) {
  const SampledRow ties = sample_rows(one_row({0.1, 0.3, 0.1, 0.3, 0.2, 0}), 6, false);
  EXPECT_THAT(values<int64_t>(ties.tokens), ElementsAre(1, 3, 4, 0, 2, kNone));
  EXPECT_THAT(values<float>(ties.conditional), ElementsAre(1, 1, 1, 1, 1, 0));
  for (int trial = 0; trial < 40; ++trial) {
    const int64_t vocabulary = pick(rng_, 1, 9000), count = pick(rng_, 1, 10);
    at::Tensor p = distributions(rng_, {1, 1, vocabulary}, 0, 2);
    if (trial % 2 == 0) p = (p * 4000).round() / 4000;  // many ties
    const std::vector<float> row = values<float>(p);
    std::vector<int64_t> order;
    for (int64_t i = 0; i < vocabulary; ++i) {
      if (row[static_cast<size_t>(i)] > 0) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
    });
    order.resize(static_cast<size_t>(count), kNone);
    EXPECT_EQ(values<int64_t>(sample_rows(p, count, false).tokens), order) << "trial " << trial;
  }
}

TEST_P(ChildrenTest, DependOnTheirOwnRowAlone) {
  const at::Tensor p = distributions(rng_, {3, 20, 700}, 300, 1);
  const SampledRow all = sample_rows(p, 6);
  at::set_num_threads(2);
  const SampledRow threads = sample_rows(p, 6);
  at::set_num_threads(1);
  EXPECT_TRUE(threads.tokens.equal(all.tokens) && threads.conditional.equal(all.conditional));
  for (int64_t count : {1, 3, 12}) {
    const int64_t shared = std::min<int64_t>(count, 6);
    const SampledRow some = sample_rows(p.slice(0, 0, 1).slice(1, 7, 9).contiguous(), count, true, 7);
    const auto part = [&](const at::Tensor& t) {
      return t.slice(0, 0, 1).slice(1, 7, 9).slice(2, 0, shared);
    };
    EXPECT_TRUE(some.tokens.slice(2, 0, shared).equal(part(all.tokens)));
    EXPECT_TRUE(some.conditional.slice(2, 0, shared).equal(part(all.conditional)));
  }
  const at::Tensor same = p.slice(1, 0, 1).slice(0, 0, 1).expand({2, 30, 700}).contiguous();
  const SampledRow streams = sample_rows(same, 1);  // equal rows, other nodes, seeds and steps
  std::map<int64_t, int> seen;
  for (const int64_t token : values<int64_t>(streams.tokens)) ++seen[token];
  EXPECT_GT(seen.size(), 20U);
}

TEST_P(ChildrenTest, BitsAreThoseOfTheDefaultInstructionSet) {
  for (const int64_t vocabulary : {1, 15, 1000, 16384}) {
    for (const bool sampled : {true, false}) {
      const at::Tensor p = distributions(rng_, {1, 4, vocabulary}, 0, 2);
      const SampledRow mine = sample_rows(p, 5, sampled);
      limit_isa(kBestIsa);
      const SampledRow other = sample_rows(p, 5, sampled);
      limit_isa(std::get<0>(GetParam()));
      EXPECT_TRUE(mine.tokens.equal(other.tokens));
      EXPECT_TRUE(same_bits(mine.conditional, other.conditional));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ChildrenTest,
                         ::testing::Combine(instruction_sets(), ::testing::Values(at::kFloat)), case_name);

// Upper critical value of chi-square at level 1e-6 (Wilson & Hilferty 1931).
double critical(double freedom) {
  constexpr double kNormal = 4.7534;
  const double spread = 2 / (9 * freedom);
  return freedom * std::pow(1 - spread + kNormal * std::sqrt(spread), 3);
}

// JointDistribution of ordered samples: P(x1, x2, x3) = p1 * p2 / (1 - p1) * p3 / (1 - p1 - p2).
// ChildSampling over seeds, steps and nodes. `skew` distorts the expected distribution, so that the test
// shows that it can fail.
double statistic(const std::vector<double>& p, double skew) {
  constexpr int64_t kImages = 32, kWidth = 1 << 15;
  const auto vocabulary = static_cast<int64_t>(p.size());
  const at::Tensor rows = at::tensor(p).to(at::kFloat).expand({kImages, kWidth, vocabulary}).contiguous();
  std::map<std::vector<int64_t>, double> counts;
  const std::vector<int64_t> tokens = values<int64_t>(sample_rows(rows, 3).tokens);
  for (size_t i = 0; i < tokens.size(); i += 3) ++counts[{tokens[i], tokens[i + 1], tokens[i + 2]}];
  double sum = 0, cells = 0;
  for (const auto& [sample, count] : counts) {
    const double a = p[static_cast<size_t>(sample[0])], b = p[static_cast<size_t>(sample[1])],
                 c = p[static_cast<size_t>(sample[2])];
    const double expected = static_cast<double>(kImages * kWidth) * a * b / (1 - a) * c / (1 - a - b * skew);
    sum += (count - expected) * (count - expected) / expected;
    ++cells;
  }
  EXPECT_EQ(cells, 60);
  return sum;
}

TEST(ChildrenDistribution, IsThatOfSamplingOneAfterAnother) {
  const std::vector<double> p = {0.4, 0.05, 0.15, 0, 0.3, 0.1};
  EXPECT_LT(statistic(p, 1), critical(59));
  EXPECT_GT(statistic(p, 0.95), critical(59));
}

// The second sample of a large flat vocabulary, tokens counted in 16 groups of different mass.
TEST(ChildrenDistribution, HoldsInALargeVocabulary) {
  constexpr int64_t kVocabulary = 3000, kRows = 1 << 14;
  constexpr size_t kGroups = 16;
  std::vector<double> p(kVocabulary), second(kGroups), counts(kGroups);
  double total = 0, whole = 0;
  for (size_t i = 0; i < p.size(); ++i)
    total += p[i] = 1.0 + static_cast<double>(i % kGroups) + (i == 9 ? 9e3 : 0);
  for (double& q : p) q /= total;
  for (const double q : p) whole += q / (1 - q);
  for (size_t i = 0; i < p.size(); ++i) second[i % kGroups] += p[i] * (whole - p[i] / (1 - p[i]));
  const at::Tensor rows = at::tensor(p).to(at::kFloat).expand({1, kRows, kVocabulary}).contiguous();
  const std::vector<int64_t> tokens = values<int64_t>(sample_rows(rows, 2).tokens);
  for (size_t i = 1; i < tokens.size(); i += 2) ++counts[static_cast<size_t>(tokens[i]) % kGroups];
  double sum = 0;
  for (size_t g = 0; g < kGroups; ++g) {
    const double expected = kRows * second[g];
    sum += (counts[g] - expected) * (counts[g] - expected) / expected;
  }
  EXPECT_LT(sum, critical(kGroups - 1));
}

TEST(Children, LogarithmIsAccurate) {
  std::mt19937_64 rng(3);
  const auto error = [](double x) { return std::abs(natural_log(x) / std::log(x) - 1); };
  for (int i = 0; i < 100000; ++i) {
    const double x = static_cast<double>(rng() >> 11) * 0x1p-53 + 0x1p-60;
    EXPECT_LT(error(x), 1e-15) << x;
    EXPECT_LT(error(1 - x * 0x1p-20), 1e-15) << x;
    EXPECT_LT(error(x * 1e-38), 1e-15) << x;
  }
  EXPECT_EQ(natural_log(1), 0);
}

TEST(Children, MistakesAreErrors) {
  const at::Tensor p = at::full({2, 3, 5}, 0.2), seeds = at::zeros({2}, at::kLong),
                   nodes = at::zeros({3}, at::kLong);
  const auto message = [&](const at::Tensor& probabilities, const at::Tensor& steps, int64_t count) {
    return message_of([&] { ops::sample_children(probabilities, {seeds, steps, nodes, count, true}); });
  };
  EXPECT_THAT(message(p.to(at::kDouble), seeds, 1), HasSubstr("values has dtype Double"));
  EXPECT_THAT(message(p, nodes, 1), HasSubstr("steps has shape [3], expected [2]"));
  EXPECT_THAT(message(p.transpose(1, 2), seeds, 1), HasSubstr("contiguous"));
  EXPECT_THAT(message(p, seeds, 0), HasSubstr("count is 0, expected 1..1024"));
  EXPECT_THAT(message(p.slice(1, 0, 2).contiguous(), seeds, 1),
              HasSubstr("nodes has shape [3], expected [2]"));
  EXPECT_THAT(message(at::zeros({2, 3, 0}), seeds, 1), HasSubstr("0 entries a row"));
}

TEST(Children, CudaSamplesTheSameBits) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  std::mt19937 rng(11);
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t vocabulary = trial < 10 ? trial + 1 : pick(rng, 11, 20000), count = pick(rng, 1, 12);
    const at::Tensor p =
        distributions(rng, {2, 3, vocabulary}, trial % 3 == 0 ? 0 : pick(rng, 1, vocabulary), 2);
    const at::Tensor seeds = integers({2}, [&](int64_t) { return pick(rng, 0, int64_t{1} << 62); });
    const at::Tensor nodes = integers({3}, [&](int64_t) { return pick(rng, 0, 63); });
    const bool sampled = trial % 4 != 0;
    const auto [tokens, conditional] = ops::sample_children(p, {seeds, seeds, nodes, count, sampled});
    const auto [device_tokens, device_conditional] = ops::sample_children(
        p.to(at::kCUDA), {seeds.to(at::kCUDA), seeds.to(at::kCUDA), nodes.to(at::kCUDA), count, sampled});
    EXPECT_TRUE(device_tokens.cpu().equal(tokens)) << "trial " << trial;
    EXPECT_TRUE(same_bits(device_conditional.cpu(), conditional)) << "trial " << trial;
  }
}

}  // namespace
}  // namespace lamplighter::test
