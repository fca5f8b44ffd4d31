#include <ATen/ops/allclose.h>
#include <ATen/ops/isfinite.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bundle/manifest/guidance.h"
#include "lamplighter/error.h"
#include "tests/continuous/toy.h"
#include "tests/error_of.h"

namespace lamplighter::test {
namespace {

constexpr std::int64_t kLength = 24;

ToyChain target_chain() {
  ToyChain chain = toy_target();
  chain.e = 0.8, chain.of_class = 0.2, chain.of_position = 0.5;
  return chain;
}

ToyChain draft_chain() {
  ToyChain chain = toy_draft('B');
  chain.e = 0.7, chain.of_class = 0.2, chain.of_position = 0.4;
  return chain;
}

std::vector<float> growing_scales(float scale) {
  GuidanceSchedule schedule;
  schedule.kind = "linear";
  Grid grid;
  grid.rows = 4, grid.columns = kLength / 4;
  SamplingOptions sampling;
  sampling.cfg_scale = scale;
  return guidance_scales(schedule, grid, sampling, kLength);
}

// Requests of all kinds: classes, guidance, temperatures.
std::vector<ContinuousRequest> mixed(std::size_t count) {
  std::vector<ContinuousRequest> requests = requests_of(count, 77);
  for (std::size_t i = 0; i < count; ++i) {
    requests[i].class_id = static_cast<std::int64_t>(i % 7);
    if (i % 3 == 1) requests[i].scales = growing_scales(2.5F);
    if (i % 4 == 2) requests[i].temperature = 0.9F;
  }
  return requests;
}

struct LoopTest : ::testing::Test {
  const ToyModel target{target_chain()}, drafter{draft_chain()};

  std::vector<ContinuousImage> run(const MethodOptions& method, const ContinuousModel& drafts,
                                   std::size_t slots = 3, std::size_t count = 8) {
    ToyRun toy{target, drafts};
    toy.shape = {kLength, 3, 3, 10};
    toy.method = method;
    return sample(toy, mixed(count), slots);
  }
};

void expect_same(const std::vector<ContinuousImage>& one, const std::vector<ContinuousImage>& other,
                 double tolerance) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_TRUE(at::allclose(one[i].latents, other[i].latents, 0, tolerance))
        << i << (one[i].latents - other[i].latents).abs().max().item<float>();
  }
}

const std::vector<MethodOptions>& all_methods() {
  static const std::vector<MethodOptions> methods = [] {
    MethodOptions official = cspd("official", 3, 0.2F, 100);
    official.steps = 20;
    return std::vector<MethodOptions>{
        passes(6, "off"),           passes(24), cspd("exact", 3), cspd("exact", 1, 0.15F), cspd("exact", 40),
        cspd("paper", 4, 0.1F, 50), official};
  }();
  return methods;
}

TEST_F(LoopTest, ADraftThatIsTheTargetIsAccepted) {
  const auto alone = run(passes(kLength), drafter);
  for (const char* rule : {"exact", "paper"}) {
    for (const std::int64_t gamma : {1, 3, 5, 100}) {
      const auto sampled = run(cspd(rule, gamma), target);
      expect_same(sampled, alone, 1e-5);
      for (const ContinuousImage& image : sampled) {
        EXPECT_EQ(image.statistics.proposals, 0);
        const std::int64_t block = std::min(gamma, kLength) + 1;
        EXPECT_EQ(image.statistics.target_passes, (kLength + block - 1) / block);
      }
    }
  }
}

TEST_F(LoopTest, APrefillOfAllIsTheTargetAlone) {
  const auto alone = run(passes(kLength), drafter), prefilled = run(cspd("exact", 4, 1), drafter);
  expect_same(prefilled, alone, 0);
  for (const ContinuousImage& image : prefilled) {
    EXPECT_EQ(image.statistics.target_passes, kLength);
    EXPECT_TRUE(image.statistics.drafted.empty());
  }
}

TEST_F(LoopTest, AnImageIsTheSameAloneAndBesideOthers) {
  for (const MethodOptions& method : all_methods()) {
    SCOPED_TRACE(method.method + method.rule);
    const auto alone = run(method, drafter, 1);
    for (const std::size_t slots : {2, 4, 8}) expect_same(run(method, drafter, slots), alone, 1e-5);
  }
}

TEST_F(LoopTest, EveryPlaceIsSampledOnce) {
  for (const MethodOptions& method : all_methods()) {
    SCOPED_TRACE(method.method + method.rule);
    for (const ContinuousImage& image : run(method, drafter)) {
      const Statistics& statistics = image.statistics;
      EXPECT_EQ(statistics.tokens, kLength);
      EXPECT_EQ(std::set<std::int64_t>(statistics.order.begin(), statistics.order.end()).size(),
                static_cast<std::size_t>(kLength));
      EXPECT_EQ(statistics.order, image.order);
      EXPECT_TRUE(image.visible.all().item<bool>());
      EXPECT_TRUE(at::isfinite(image.latents).all().item<bool>());
      std::int64_t committed = 0;
      for (const Cycle& cycle : statistics.cycles) committed += cycle.committed;
      EXPECT_GE(committed, kLength - 1);
      EXPECT_LE(statistics.target_passes, kLength);
    }
  }
}

TEST_F(LoopTest, SeedsGiveOtherOrders) {
  const auto sampled = run(passes(4), drafter);
  EXPECT_NE(sampled[0].order, sampled[1].order);
}

TEST_F(LoopTest, ADrafterOfNoNumbersCostsAPassAToken) {
  ToyModel broken(draft_chain());
  broken.broken = true;
  for (const char* rule : {"exact", "paper"}) {
    for (const ContinuousImage& image : run(cspd(rule, 3), broken)) {
      EXPECT_TRUE(at::isfinite(image.latents).all().item<bool>());
      EXPECT_EQ(image.statistics.target_passes, kLength);
      EXPECT_EQ(image.statistics.fallbacks, kLength);
    }
  }
}

TEST_F(LoopTest, ATargetOfNoNumbersIsAnError) {
  ToyModel broken(target_chain());
  broken.broken = true;
  for (const MethodOptions& method : all_methods()) {
    ToyRun toy{broken, drafter};
    toy.shape = {kLength, 3, 3, 10};
    toy.method = method;
    EXPECT_NE(error_of(ExitCode::bundle, [&] { sample(toy, mixed(2), 2); }), "")
        << method.method << method.rule;
  }
}

TEST_F(LoopTest, ACapOfOneTakesTheFirstProposal) {
  std::int64_t fallbacks = 0, proposals = 0;
  for (const ContinuousImage& image : run(cspd("exact", 4, 0, 1), drafter)) {
    fallbacks += image.statistics.fallbacks;
    proposals += image.statistics.proposals;
  }
  EXPECT_GT(fallbacks, 0);
  EXPECT_GE(proposals, fallbacks);
}

// Of the official program: cases of `mask_schedule.json`.
TEST(ContinuousSchedule, IsTheCosineOfMar) {
  const auto schedule = [](std::int64_t positions, std::int64_t passes) {
    std::vector<std::int64_t> left;
    std::int64_t masked = positions;
    for (std::int64_t pass = 0; pass < passes; ++pass)
      left.push_back(masked = masked_after(positions, passes, pass, masked));
    return left;
  };
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(schedule(64, 1), List({1}));
  EXPECT_EQ(schedule(64, 3), List({55, 32, 1}));
  EXPECT_EQ(schedule(64, 8), List({62, 59, 53, 45, 35, 24, 12, 1}));
  const List each = schedule(64, 64);  // one token a pass
  for (std::size_t k = 0; k < 63; ++k) EXPECT_EQ(each[k], 63 - static_cast<std::int64_t>(k));
}

TEST(ContinuousSchedule, TokensOfAPassAreGuidedAsItsLastOne) {
  ContinuousRequest request;
  EXPECT_EQ(request.scale(5), 1);
  request.scales = growing_scales(3);
  EXPECT_FLOAT_EQ(request.scale(kLength - 6), 1.5F);  // six are sampled
  EXPECT_FLOAT_EQ(request.scale(1), request.scales.back());
  EXPECT_FLOAT_EQ(request.scale(0), request.scales.back());
}

}  // namespace
}  // namespace lamplighter::test
