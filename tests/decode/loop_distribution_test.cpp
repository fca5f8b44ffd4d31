#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "tests/decode/loop_distribution.h"
#include "tests/decode/toy_methods.h"

// Images sampled by the whole loop (prompt, drafter, trees, acceptance, caches) follow the distribution of
// the target, whatever is drafted.
namespace lamplighter::test {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr int kSlowdown = 5;  // an instrumented build samples a 32nd of the images
#else
constexpr int kSlowdown = 0;
#endif
constexpr std::int64_t kMany = std::int64_t{1} << (16 - kSlowdown);
constexpr std::int64_t kFewer = std::int64_t{1} << (15 - kSlowdown);  // finds the bugs of mutation_test.cpp

struct DistributionCase {
  std::string name;
  Method method;
  std::int64_t images = kFewer;
  std::int64_t interval = -1;  // cfg_interval
  bool row_ends = false;
  bool model = false;     // a small target drafts
  bool decaying = false;  // guidance
};

SyntheticShape shape_of(const DistributionCase& test) {
  SyntheticShape shape = run_shape(test.row_ends);
  if (test.decaying) shape.schedule = decaying();
  return shape;
}

void PrintTo(const DistributionCase& test, std::ostream* out) {
  *out << test.name;
}

class LoopDistribution : public ::testing::TestWithParam<DistributionCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }

  static bool loop_fits(const Toy& toy, const DistributionCase& test) {
    SamplingOptions sampling = run_sampling();
    sampling.cfg_interval = test.interval;
    const JointDistribution counts = counted_distribution(
        toy, sampling, distribution_images(test.images), [&](const Prompts& prompts, const auto& requests) {
          return decode(toy.models(), test.method, prompts, requests, toy.grid());
        });
    // Drafts matter. Counted where complete images stand still instead of leaving the batch.
    const std::int64_t fewer = std::max(kBatch, test.images / 16);
    std::int64_t accepted = 0;
    counted_distribution(toy, sampling, fewer, [&](const Prompts& prompts, const auto& requests) {
      return decode_by_parts(toy.models(), test.method, prompts, requests, toy.grid(),
                             [&](const DecodeState& state, std::int64_t cycle) {
                               if (cycle > 0)
                                 accepted +=
                                     state.run.counters.report.select(1, 3).sum().item<std::int64_t>();
                             });
    });
    EXPECT_EQ(accepted > fewer / 5, drafts(test.method)) << accepted << " accepted";
    return fits(lossless_distribution(toy, sampling), counts);
  }
};

TEST_P(LoopDistribution, IsThatOfTheTarget) {
  const Toy toy = make_toy(shape_of(GetParam()), GetParam().model);
  EXPECT_TRUE(loop_fits(toy, GetParam()));
}

TEST_P(LoopDistribution, HoldsWhereSlotsAreRefilled) {
  const Toy toy = make_toy(shape_of(GetParam()), GetParam().model);
  SamplingOptions sampling = run_sampling();
  sampling.cfg_interval = GetParam().interval;
  constexpr std::int64_t kRefilledSlots = 48;
  const JointDistribution counts = distribution_of_slots(toy, GetParam().method, sampling,
                                                         distribution_images(kFewer / 4), kRefilledSlots);
  EXPECT_TRUE(fits(lossless_distribution(toy, sampling), counts));
}

Method ending_block() {
  Method method = ending_method("chain-3", 0.5F);
  method.verify.rule = Rule::block;
  return method;
}

std::vector<DistributionCase> distribution_cases() {
  const Tree siblings = make_tree({{0}, {1}, {0, 0}, {0, 1}});
  Method conditional = static_method(siblings);
  conditional.conditional = true;
  return {{"autoregression", {}},
          {"siblings", static_method(siblings), kMany},
          {"chain", static_method(preset_tree("chain-3"))},
          {"chain_that_ends", ending_method("chain-3", 0.5F)},
          {"block_that_ends", ending_block()},
          {"row_ends_chain_that_ends", ending_method("chain-3", 0.4F), kFewer, -1, true},
          {"model_chain_that_ends", ending_method("chain-3", 0.5F), kFewer, -1, false, true},
          {"traversal", static_method(siblings, "traversal")},
          {"block", static_method(preset_tree("chain-2"), "block")},
          {"top_children", static_method(siblings, "exact", true)},
          {"dynamic", dynamic_method(1, 2, 4)},
          {"dynamic_that_adapts", adapting(dynamic_method(2, 3, 7))},
          {"conditional_drafts", conditional},
          {"partly_guided", static_method(siblings), kFewer, 0},
          {"decaying_siblings", static_method(siblings), kFewer, -1, false, false, true},
          {"decaying_dynamic", dynamic_method(1, 2, 4), kFewer, -1, true, false, true},
          {"decaying_window", window_method("chain-3"), kFewer, -1, true, false, true},
          {"decaying_partly_guided", static_method(preset_tree("chain-3")), kFewer, 0, true, true, true},
          {"row_ends_autoregression", {}, kFewer, -1, true},
          {"row_ends_siblings", static_method(siblings), kFewer, -1, true},
          {"row_ends_chain", static_method(preset_tree("chain-3")), kFewer, -1, true},
          {"row_ends_traversal", static_method(siblings, "traversal"), kFewer, -1, true},
          {"row_ends_block", static_method(preset_tree("chain-3"), "block"), kFewer, -1, true},
          {"row_ends_dynamic", dynamic_method(1, 2, 4), kFewer, -1, true},
          {"row_ends_dynamic_that_adapts", adapting(dynamic_method(1, 2, 4)), kFewer, -1, true},
          {"model_chain", static_method(preset_tree("chain-3")), kMany, -1, false, true},
          {"model_siblings", static_method(siblings), kFewer, -1, false, true},
          {"model_block", static_method(preset_tree("chain-2"), "block"), kFewer, -1, false, true},
          {"model_dynamic", dynamic_method(1, 2, 4), kFewer, -1, false, true},
          {"model_conditional_drafts", conditional, kFewer, -1, false, true},
          {"model_partly_guided", static_method(preset_tree("chain-3")), kFewer, 0, false, true},
          {"model_row_ends_chain", static_method(preset_tree("chain-3")), kFewer, -1, true, true},
          {"model_row_ends_siblings", static_method(siblings), kFewer, -1, true, true}};
}

INSTANTIATE_TEST_SUITE_P(Methods, LoopDistribution, ::testing::ValuesIn(distribution_cases()),
                         [](const auto& test) { return test.param.name; });

// A distribution test is worth what it finds: the exact distribution changes by a few per cent with every
// token before.
TEST(LosslessDistribution, SumsToOneAndDependsOnTheWholePrefix) {
  const Toy toy(run_shape());
  const JointDistribution distribution = lossless_distribution(toy, run_sampling());
  double sum = 0;
  for (const auto& [tokens, probability] : distribution) sum += probability;
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_EQ(distribution.size(), 256U);
  // The last token's distribution given the first three, for prefixes that differ in one token.
  std::map<Tokens, std::map<std::int64_t, double>> next;
  std::map<Tokens, double> prefix;
  for (const auto& [tokens, probability] : distribution) {
    const Tokens before(tokens.begin(), tokens.end() - 1);
    next[before][tokens.back()] += probability;
    prefix[before] += probability;
  }
  for (std::size_t changed = 0; changed < 3; ++changed) {
    double most = 0;
    for (const auto& [before, chances] : next) {
      for (const auto& [other, others] : next) {
        bool comparable = true;
        for (std::size_t i = 0; i < 3; ++i)
          comparable = comparable && (i == changed || before[i] == other[i]);
        if (!comparable) continue;
        double distance = 0;
        for (std::int64_t id = 0; id < 5; ++id) {
          const auto chance = [&](const auto& of, const Tokens& key) {
            const auto found = of.find(id);
            return found == of.end() ? 0.0 : found->second / prefix[key];
          };
          distance += std::abs(chance(chances, before) - chance(others, other)) / 2;
        }
        most = std::max(most, distance);
      }
    }
    EXPECT_GT(most, 0.05) << "token " << changed;
  }
}

}  // namespace
}  // namespace lamplighter::test
