#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/bench.h"

namespace lamplighter {
namespace {

TEST(Summary, QuantilesInterpolateBetweenOrderStatistics) {
  const Summary summary = summarise({5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(summary.mean, 3);
  EXPECT_DOUBLE_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.p10, 1.4);
  EXPECT_DOUBLE_EQ(summary.p50, 3);
  EXPECT_DOUBLE_EQ(summary.p90, 4.6);
  EXPECT_DOUBLE_EQ(summary.max, 5);
  EXPECT_DOUBLE_EQ(summarise({7}).p90, 7);
}

TEST(Interval, IsStudents) {
  // Mean 2, standard error 1 / sqrt(3), two degrees of freedom: 4.303 standard errors.
  const Interval interval = mean_interval({1, 2, 3});
  EXPECT_DOUBLE_EQ(interval.mean, 2);
  EXPECT_NEAR(interval.high - 2, 4.303 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(2 - interval.low, 4.303 / std::sqrt(3.0), 1e-9);
  EXPECT_TRUE(std::isnan(mean_interval({1}).low));
  EXPECT_EQ(mean_interval({}).count, 0U);
  // Forty degrees of freedom, past the table: 2.0211.
  std::vector<double> many;
  for (int i = 0; i < 41; ++i) many.push_back(i % 2);
  const double variance = 20.0 * 21.0 / 41.0 / 40.0;
  EXPECT_NEAR(mean_interval(many).high - mean_interval(many).mean, 2.0211 * std::sqrt(variance / 41), 1e-4);
}

TEST(Interval, OfRatiosIsThatOfLogarithms) {
  const Interval interval = ratio_interval({2, 8});
  EXPECT_DOUBLE_EQ(interval.mean, 4);
  EXPECT_DOUBLE_EQ(interval.low * interval.high, 16);
  EXPECT_LT(interval.low, 2);
}

Statistics drawn(std::int64_t tokens, std::int64_t passes, double ms) {
  Statistics statistics;
  statistics.tokens = tokens;
  statistics.target_passes = passes;
  statistics.decode_ms = ms;
  return statistics;
}

TEST(BenchReport, SeparatesMethodsAndLeavesThePrefillOut) {
  Statistics slow = drawn(11, 11, 20);
  slow.batch = 2;
  const std::vector<BenchReport> reports =
      report({{"ar", 0, 0, 1, slow}, {"eagle", 0, 0, 1, drawn(11, 5, 10)}, {"ar", 1, 0, 1, slow}});
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].method, "ar");
  EXPECT_EQ(reports[0].samples, 2U);
  EXPECT_DOUBLE_EQ(reports[0].token_ms.p50, 2);
  EXPECT_DOUBLE_EQ(reports[0].tokens_per_second.p50, 1000);
  EXPECT_DOUBLE_EQ(reports[1].token_ms.p50, 1);
  EXPECT_DOUBLE_EQ(reports[1].tokens_per_pass, 2.2);
}

// Pairing keeps the machine's slow spells, which hit both methods, out of the ratio.
TEST(BenchReport, SpeedUpsArePairedByBatch) {
  std::vector<BenchSample> samples;
  for (std::size_t batch = 0; batch < 4; ++batch) {
    const double spell = batch == 2 ? 10 : 1;
    samples.push_back({"ar", 0, batch, batch, drawn(11, 11, 20 * spell)});
    samples.push_back({"eagle", 0, batch, batch, drawn(11, 5, 10 * spell)});
  }
  const Interval speedup = report(samples)[1].speedup;
  EXPECT_EQ(speedup.count, 4U);
  EXPECT_NEAR(speedup.mean, 2, 1e-12);
  EXPECT_NEAR(speedup.high, 2, 1e-9);
}

TEST(BenchReport, RepeatsAndPicturesOfABatchAreNoSamplesOfTheirOwn) {
  std::vector<BenchSample> samples;
  for (int repeat = 0; repeat < 5; ++repeat) {
    for (std::size_t batch = 0; batch < 2; ++batch) {
      for (std::uint64_t picture = 0; picture < 3; ++picture) {
        samples.push_back({"ar", repeat, batch, picture, drawn(11, 11, 20)});
        samples.push_back({"eagle", repeat, batch, picture, drawn(11, 5, batch == 0 ? 10 : 5)});
      }
    }
  }
  const std::vector<BenchReport> reports = report(samples);
  EXPECT_EQ(reports[1].samples, 10U);
  EXPECT_EQ(reports[1].speedup.count, 2U);
  EXPECT_NEAR(reports[1].speedup.mean, std::sqrt(8.0), 1e-12);
  // One batch alone: its repeats are what there is.
  samples.erase(std::remove_if(samples.begin(), samples.end(), [](const auto& s) { return s.batch == 1; }),
                samples.end());
  EXPECT_EQ(report(samples)[1].speedup.count, 5U);
}

// Pictures that began together end one by one.
TEST(BenchReport, ThePictureThatTookLongestStandsForItsBatch) {
  const std::vector<BenchReport> reports = report({{"ar", 0, 0, 1, drawn(11, 11, 20)},
                                                   {"ar", 0, 0, 2, drawn(11, 11, 30)},
                                                   {"ar", 0, 0, 3, drawn(11, 11, 10)}});
  EXPECT_EQ(reports[0].samples, 1U);
  EXPECT_DOUBLE_EQ(reports[0].decode_ms.p50, 30);
}

TEST(BenchReport, SharesAndStagesArePerCycle) {
  Statistics statistics = drawn(9, 5, 10);
  statistics.cycles.resize(4);
  statistics.accepted = {3, 1};
  statistics.draft_ms = 2;
  statistics.score_ms = 4;
  statistics.cycle_ms = 8;
  const BenchReport result = report({{"eagle", 0, 0, 1, statistics}}).front();
  EXPECT_EQ(result.reached, (std::vector<double>{0.75, 0.25}));
  EXPECT_DOUBLE_EQ(result.draft_ms, 0.5);
  EXPECT_DOUBLE_EQ(result.cycle_ms, 2);
  EXPECT_DOUBLE_EQ(result.acceptance_length, 2);
  EXPECT_EQ(result.speedup.count, 0U);  // there is no baseline
}

}  // namespace
}  // namespace lamplighter
