#include "draft/rows/zipar.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "draft/rows/zipar_plan.h"
#include "tests/decode/toy_methods.h"
#include "tests/draft/rows/rows_run.h"

namespace lamplighter::test {
namespace {

class ZiparTest : public RowsTest {};

TEST_P(ZiparTest, OneRowAtATimeIsAutoregression) {
  for (const bool blank : {false, true}) {
    for (const float temperature : {0.0F, 1.0F}) {
      for (const std::int64_t interval : {-1, 9}) {
        const auto samples = requests(temperature, interval);
        const at::Tensor expected = run({}, samples);
        EXPECT_TRUE(at::equal(run(zipar_method(6, blank), samples), expected));
        EXPECT_TRUE(at::equal(run(zipar_method(50, blank), samples), expected));
        EXPECT_FALSE(at::equal(run(zipar_method(3, blank), samples), expected));
      }
    }
  }
}

// 2 W + (H - 2) s passes, the prefill among them; by default s is half of a row.
TEST_P(ZiparTest, TakesThePassesThatArePlanned) {
  for (const auto& [ahead, passes] : {std::pair{0, 21}, {1, 15}, {2, 18}, {3, 21}, {5, 27}}) {
    std::int64_t cycles = 0;
    run(zipar_method(ahead), requests(1), [&](const Report& report) {
      for (const ImageReport& image : report.images) EXPECT_EQ(image.codes.size(), image.positions.size());
      return ++cycles > 0;
    });
    EXPECT_EQ(cycles + 1, passes) << ahead;
  }
}

TEST_P(ZiparTest, ImagesOfABatchAreThoseSampledAlone) {
  for (const bool blank : {false, true}) expect_batch_is_alone(zipar_method(2, blank));
}

// As on a device, where every pass has the most rows.
TEST_P(ZiparTest, RowsThatHoldNothingChangeNothing) {
  const Method method = zipar_method(2);
  const auto samples = requests(1);
  at::Tensor order;
  const at::Tensor fixed = decode_by_parts(toy_.models(), method, prompts_, samples, toy_.grid(),
                                           [&](DecodeState& state, std::int64_t /*cycle*/) {
                                             state.run.fixed_shapes = true;
                                             order = state.draft_method->order()[0];
                                           });
  EXPECT_TRUE(at::equal(fixed, run(method, samples).index_select(1, order)));
}

// The k-th code of an image is its k-th place's, whenever it is sampled.
TEST_P(ZiparTest, GuidanceEndsAtAPlace) {
  const c10::InferenceMode inference;
  constexpr std::int64_t kInterval = 9, kGuided = kInterval + 2;
  const Method method = zipar_method(2);
  DecodeState state = make_state(toy_.models(), method, prompts_, requests(1, kInterval), toy_.grid());
  const ZiparPlan plan = plan_zipar(5, 6, 2);
  Draft tree = last_token(state);
  Scores scores = prefill(toy_.models(), prompts_, state);
  commit(state, tree, scores, verify(toy_.models(), method, state, tree, scores));
  bool mixed = false;
  for (const ZiparPlan::Pass& pass : plan.passes) {
    tree = draft(state);
    scores = score(toy_.models(), state, tree);
    const Verified verified = verify(toy_.models(), method, state, tree, scores);
    std::int64_t guided = 0, deciding = 0;
    for (const ZiparPlan::Query& query : pass) {
      if (!query.decides) continue;
      const auto scale =
          verified.target.statistics[0][deciding][0].item<float>();  // RowStatistics: guidance first
      EXPECT_EQ(scale, query.position + 1 < kGuided ? 2.5F : 1.0F) << "place " << query.position + 1;
      ++deciding;
      guided += query.position + 1 < kGuided ? 1 : 0;
    }
    mixed = mixed || (guided > 0 && guided < deciding);
    commit(state, tree, scores, verified);
  }
  EXPECT_TRUE(mixed);
  EXPECT_EQ(state.run.counters.steps.min().item<std::int64_t>(), state.run.counters.total);
}

TEST_P(ZiparTest, WhatIsLackingIsLeftOutOrSeenAsZeros) {
  const auto samples = requests(1);
  EXPECT_FALSE(at::equal(run(zipar_method(2, false), samples), run(zipar_method(2, true), samples)));
}

INSTANTIATE_TEST_SUITE_P(Types, ZiparTest, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

}  // namespace
}  // namespace lamplighter::test
