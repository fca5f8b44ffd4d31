#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/ops.h"
#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/common/operators.h"

namespace lamplighter::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Filter {
  float temperature = 1;
  int64_t top_k = 0;
  float top_p = 1;
  bool eagle = false;
  float guidance = 1;
};

at::Tensor filtered(const at::Tensor& logits, const Filter& filter) {
  const int64_t images = filter.guidance == 1.0F ? logits.size(0) : logits.size(0) / 2;
  const auto each = [&](auto value, at::ScalarType dtype) { return at::full({images}, value, dtype); };
  return ops::probabilities(ops::guide_and_filter(
      logits,
      {each(filter.guidance, at::kFloat), each(filter.temperature, at::kFloat), each(filter.top_k, at::kLong),
       each(filter.top_p, at::kFloat), filter.eagle ? "eagle" : "ar"}));
}

at::Tensor sampled(const at::Tensor& probabilities, const at::Tensor& uniforms, float temperature = 1) {
  return ops::sample(probabilities, uniforms, at::full({probabilities.size(0)}, temperature, at::kFloat));
}

std::vector<int64_t> values(const at::Tensor& tensor) {
  const int64_t* p = tensor.const_data_ptr<int64_t>();
  return {p, p + tensor.numel()};
}

// The definition in double precision with a full sort.
class Reference {
 public:
  Reference(const at::Tensor& row, const Filter& filter) : filter_(filter) {
    const at::Tensor wide = row.to(at::kDouble);
    const double* p = wide.const_data_ptr<double>();
    z_.assign(p, p + wide.numel());
    kept_.assign(z_.size(), true);
    if (!filter.eagle) cut_top_k();
    if (filter.eagle ? filter.top_p >= 1e-8F && filter.top_p < 1 : filter.top_p < 1) cut_top_p();
    if (filter.eagle) cut_top_k();
  }

  std::vector<double> probabilities() const {
    const double largest = *std::max_element(z_.begin(), z_.end());
    std::vector<double> result(z_.size());
    for (size_t i = 0; i < z_.size(); ++i) {
      result[i] = kept_[i] ? std::exp((z_[i] - largest) / filter_.temperature) : 0;
    }
    const double total = std::accumulate(result.begin(), result.end(), 0.0);
    for (double& p : result) p /= total;
    return result;
  }

  // Distance of the closest cumulative mass to the top-p limit: a kept set is only compared where single
  // precision cannot decide it.
  double margin() const { return margin_; }

 private:
  void cut_top_k() {
    if (filter_.top_k <= 0) return;
    std::vector<double> sorted;
    for (size_t i = 0; i < z_.size(); ++i) {
      if (kept_[i]) sorted.push_back(z_[i]);
    }
    std::sort(sorted.rbegin(), sorted.rend());
    const auto k = std::min(static_cast<size_t>(filter_.top_k), sorted.size());
    for (size_t i = 0; i < z_.size(); ++i) kept_[i] = kept_[i] && z_[i] >= sorted[k - 1];
  }

  void cut_top_p() {
    const std::vector<double> p = probabilities();
    std::vector<size_t> order(z_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return filter_.eagle ? z_[a] < z_[b] : z_[a] > z_[b]; });
    const double limit = filter_.eagle ? 1 - static_cast<double>(filter_.top_p) : filter_.top_p;
    double mass = 0;
    for (const size_t i : order) {
      const double before = mass;
      mass += p[i];
      const double decisive = filter_.eagle ? mass : before;
      const bool never_cut = filter_.eagle ? i == order.back() : i == order.front();
      if (never_cut) continue;
      kept_[i] = kept_[i] && (filter_.eagle ? decisive > limit : decisive <= limit);
      margin_ = std::min(margin_, std::abs(decisive - limit));
    }
  }

  Filter filter_;
  std::vector<double> z_;
  std::vector<bool> kept_;
  double margin_ = 1;
};

void expect_close(const at::Tensor& row, const std::vector<double>& expected, const std::string& what) {
  const float* p = row.const_data_ptr<float>();
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(p[i] > 0, expected[i] > 1e-37) << what << ", id " << i;
    ASSERT_NEAR(p[i], expected[i], 1e-6) << what << ", id " << i;
  }
}

class SamplingTest : public KernelTest {};

TEST_P(SamplingTest, FilterMatchesTheSortedDefinition) {
  int compared = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t vocabulary = trial < 20 ? trial + 1 : pick(rng_, 2, 2500);
    Filter filter;
    filter.temperature = std::vector<float>{1, 0.5F, 1.7F}[static_cast<size_t>(pick(rng_, 0, 2))];
    filter.top_k = pick(rng_, 0, 1) * pick(rng_, 1, vocabulary + 3);
    filter.top_p = std::vector<float>{1, 0.9F, 0.31F, 0, 1e-9F, 1.5F}[static_cast<size_t>(pick(rng_, 0, 5))];
    filter.eagle = trial % 2 != 0;
    at::Tensor logits = random_tensor(rng_, {1, 1, vocabulary}, dtype(), 2);
    if (trial % 5 == 0) logits = (logits * 2).round();  // many ties
    if (trial % 7 == 0 && vocabulary > 4) logits.slice(2, 1, vocabulary / 2).fill_(-kInfinity);
    const Reference reference(logits, filter);
    if (reference.margin() < 1e-6) continue;
    ++compared;
    expect_close(filtered(logits, filter)[0][0], reference.probabilities(), "trial " + std::to_string(trial));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(compared, 200);
}

TEST_P(SamplingTest, TiesAtTheLimits) {
  const at::Tensor logits = at::tensor({1.0F, 1.0F, 1.0F, 1.0F, 0.0F}).log().to(dtype()).view({1, 1, 5});
  const auto kept = [&](const Filter& filter) {
    std::vector<int64_t> ids;
    for (int64_t id = 0; id < 5; ++id) {
      if (filtered(logits, filter)[0][0][id].item<float>() > 0) ids.push_back(id);
    }
    return ids;
  };
  EXPECT_THAT(kept({1, 2, 1, false}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(kept({1, 2, 1, true}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(kept({1, 0, 0.6F, false}), ElementsAre(0, 1, 2));  // masses before: 0, 1/4, 1/2, 3/4
  EXPECT_THAT(kept({1, 0, 0.5F, false}), ElementsAre(0, 1, 2));  // a mass equal to p stays
  EXPECT_THAT(kept({1, 0, 0.4F, true}), ElementsAre(2, 3));      // masses up to: 1/4, 1/2, 3/4, 1
  EXPECT_THAT(kept({1, 0, 0.5F, true}), ElementsAre(2, 3));      // a mass equal to 1 - p goes
}

TEST_P(SamplingTest, GuidanceCombinesPairsOfSequences) {
  const at::Tensor logits = random_tensor(rng_, {4, 3, 65}, dtype());
  Filter filter;
  filter.guidance = 3.5F;
  const at::Tensor got = filtered(logits, filter);
  ASSERT_THAT(got.sizes().vec(), ElementsAre(2, 3, 65));
  for (int64_t image = 0; image < 2; ++image) {
    for (int64_t row = 0; row < 3; ++row) {
      const at::Tensor c = logits[2 * image][row].to(at::kDouble);
      const at::Tensor u = logits[2 * image + 1][row].to(at::kDouble);
      expect_close(got[image][row], Reference(u + (c - u) * 3.5, Filter{}).probabilities(), "guided");
    }
  }
  // Scale 1 is the conditional row itself, also where the other one is masked.
  const at::Tensor one = at::full({2}, 1.0, at::kFloat);
  at::Tensor masked = logits.clone();
  masked[1].fill_(-kInfinity);
  const at::Tensor plain =
      ops::probabilities(ops::guide_and_filter(masked, {one, one, at::zeros({2}, at::kLong), one, "ar"}));
  EXPECT_TRUE(same_bits(plain[0], filtered(logits[0].unsqueeze(0), Filter{})[0]));
}

TEST_P(SamplingTest, ARowDependsOnNothingElse) {
  const at::Tensor logits = random_tensor(rng_, {6, 9, 700}, dtype(), 3);
  for (const bool eagle : {false, true}) {
    const Filter filter{0.9F, 50, 0.8F, eagle, 1};
    const at::Tensor all = filtered(logits, filter);
    const int threads = at::get_num_threads();
    at::set_num_threads(3);
    EXPECT_TRUE(same_bits(filtered(logits, filter), all));
    at::set_num_threads(threads);
    for (int64_t row = 0; row < 9; ++row) {
      const at::Tensor alone = logits[4][row].clone().view({1, 1, 700});
      EXPECT_TRUE(same_bits(filtered(alone, filter)[0][0], all[4][row]));
    }
    limit_isa(Isa::kPortable);
    EXPECT_TRUE(same_bits(filtered(logits, filter), all)) << "instruction sets differ";
    limit_isa(std::get<0>(GetParam()));
  }
}

TEST_P(SamplingTest, ImagesHaveTheirOwnParameters) {
  const at::Tensor logits = random_tensor(rng_, {3, 2, 90}, dtype());
  const at::Tensor one = at::full({3}, 1.0, at::kFloat);
  const at::Tensor temperature = at::tensor({1.0F, 0.5F, 2.0F});
  const at::Tensor top_k = at::tensor({0, 7, 1}, at::kLong);
  const at::Tensor top_p = at::tensor({0.5F, 1.0F, 1.0F});
  const at::Tensor got =
      ops::probabilities(ops::guide_and_filter(logits, {one, temperature, top_k, top_p, "ar"}));
  const std::vector<Filter> filters = {{1, 0, 0.5F}, {0.5F, 7, 1}, {2, 1, 1}};
  for (int64_t image = 0; image < 3; ++image) {
    const at::Tensor alone = filtered(logits[image].unsqueeze(0), filters[static_cast<size_t>(image)]);
    EXPECT_TRUE(same_bits(got[image], alone[0]));
  }
}

TEST_P(SamplingTest, BadRowsGiveNoToken) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {nan, kInfinity, -kInfinity}) {
    at::Tensor logits = random_tensor(rng_, {1, 2, 37}, dtype());
    bad == -kInfinity ? logits[0][1].fill_(bad) : logits[0][1][20].fill_(bad);
    const at::Tensor got = filtered(logits, Filter{1, 5, 0.9F});
    EXPECT_EQ(got[0][1].abs().sum().item<float>(), 0);
    EXPECT_NEAR(got[0][0].sum().item<float>(), 1, 1e-6);
    for (const float temperature : {0.0F, 1.0F}) {
      EXPECT_EQ(values(sampled(got, at::full({1, 2}, 0.3, at::kFloat), temperature))[1], -1);
    }
  }
}

TEST_P(SamplingTest, HugeAndTinyLogits) {
  const at::Tensor huge = at::tensor({-3e38F, 3e38F, 2e38F, -kInfinity}).view({1, 1, 4});
  EXPECT_THAT(values(sampled(filtered(huge, Filter{1, 3, 0.9F}), at::full({1, 1}, 0.99, at::kFloat))),
              ElementsAre(1));
  const at::Tensor tiny = at::tensor({1e-31F, 3e-31F, 2e-31F}).view({1, 1, 3});
  expect_close(filtered(tiny, Filter{1, 2, 1})[0][0], {0, 0.5, 0.5}, "tiny");
  const at::Tensor zeros = at::tensor({-0.0F, 0.0F, -1.0F}).view({1, 1, 3});
  expect_close(filtered(zeros, Filter{1, 1, 1})[0][0], {0.5, 0.5, 0}, "-0 and 0 are equal");
}

TEST_P(SamplingTest, GreedyTakesTheFirstOfTheLargest) {
  const at::Tensor logits = at::tensor({1.0F, 4.0F, 4.0F - 5e-7F, 4.0F, 4.0F}).view({1, 1, 5});
  for (const bool eagle : {false, true}) {
    const at::Tensor got = filtered(logits, Filter{0, 2, 0.3F, eagle});
    EXPECT_THAT(values(sampled(got, at::full({1, 1}, 0.9, at::kFloat), 0)), ElementsAre(1));
  }
}

TEST_P(SamplingTest, SampleInvertsTheCumulativeDistribution) {
  const at::Tensor row = at::tensor({0.0F, 0.25F, 0.0F, 0.5F, 0.25F, 0.0F});
  const std::vector<float> u = {0, 0.2499F, 0.25F, 0.5F, 0.7499F, 0.75F, 0x1.fffffep-1F};
  const at::Tensor uniforms = at::tensor(u).view({1, 7});
  EXPECT_THAT(values(sampled(row.expand({1, 7, 6}).contiguous(), uniforms)),
              ElementsAre(1, 1, 3, 3, 3, 4, 4));
  const at::Tensor small = at::tensor({1e-9F, 0.5F, 0.5F}).view({1, 1, 3});
  EXPECT_THAT(values(sampled(small, at::zeros({1, 1}))), ElementsAre(0));
  // Rows need not sum to 1; zeros behind the last entry are not sampled.
  const at::Tensor loose = at::cat({row * 3, at::zeros({500})}).expand({1, 7, 506}).contiguous();
  EXPECT_THAT(values(sampled(loose, uniforms)), ElementsAre(1, 1, 3, 3, 3, 4, 4));
}

// Chi-square of a million samples from the filtered distribution of random logits, level 1e-6.
TEST_P(SamplingTest, SamplesFollowTheDistribution) {
  constexpr int64_t kSamples = 1 << 20;
  constexpr int64_t kVocabulary = 16;
  constexpr double kCritical = 56.49;  // 15 degrees of freedom
  const at::Tensor row = filtered(random_tensor(rng_, {1, 1, kVocabulary}, dtype()), Filter{});
  const at::Tensor many = row.expand({1, kSamples, kVocabulary}).contiguous();
  for (const int64_t seed : {int64_t{42}, std::numeric_limits<int64_t>::min(), int64_t{-1}}) {
    const at::Tensor uniforms = ops::uniforms(at::tensor({seed}, at::kLong), at::tensor({7}, at::kLong),
                                              ops::Purpose::token, kSamples);
    std::vector<double> counts(kVocabulary);
    for (const int64_t id : values(sampled(many, uniforms))) counts.at(static_cast<size_t>(id)) += 1;
    double statistic = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const double expected = row[0][0][static_cast<int64_t>(i)].item<double>() * kSamples;
      statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    EXPECT_LT(statistic, kCritical) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(, SamplingTest, all_cases(), case_name);

TEST(SamplingErrorsTest, NameTheArgument) {
  const at::Tensor logits = at::zeros({1, 2, 5});
  const at::Tensor one = at::full({1}, 1.0, at::kFloat);
  const at::Tensor k = at::zeros({1}, at::kLong);
  EXPECT_THAT(message_of([&] {
                ops::guide_and_filter(logits, {one, one, k, one, "best"});
              }),
              HasSubstr("order is 'best', expected ar or eagle"));
  EXPECT_THAT(message_of([&] {
                ops::probabilities(ops::guide_and_filter(at::zeros({3, 2, 5}), {one, one, k, one, "ar"}));
              }),
              HasSubstr("expected 1 or 2 sequences for 1 images"));
  EXPECT_THAT(message_of([&] {
                ops::guide_and_filter(logits, {one, one, one, one, "ar"});
              }),
              HasSubstr("top_k has dtype Float, expected Long"));
  EXPECT_THAT(message_of([&] {
                ops::guide_and_filter(logits.to(at::kInt), {one, one, k, one, "ar"});
              }),
              HasSubstr("logits have dtype Int"));
  EXPECT_THAT(message_of([&] {
                ops::probabilities(ops::guide_and_filter(at::zeros({1, 2, 0}), {one, one, k, one, "ar"}));
              }),
              HasSubstr("0 entries a row"));
  EXPECT_THAT(message_of([&] {
                ops::sample(logits, at::zeros({1, 3}), one);
              }),
              HasSubstr("uniforms has shape"));
  EXPECT_THAT(message_of([&] { ops::uniforms(k, at::zeros({2}, at::kLong), ops::Purpose::token, 1); }),
              HasSubstr("steps has shape"));
  EXPECT_THAT(message_of([&] { ops::uniforms(k, k, ops::Purpose::token, -1); }), HasSubstr("count is -1"));
}

}  // namespace
}  // namespace lamplighter::test
