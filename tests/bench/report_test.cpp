#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/report/report.h"

namespace lamplighter {
namespace {

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
  EXPECT_DOUBLE_EQ(reports[1].step_compression.mean, 2.2);
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
  EXPECT_DOUBLE_EQ(result.acceptance_length.mean, 2);
  EXPECT_EQ(result.speedup.count, 0U);  // there is no baseline
}

// A batch of four takes as long as one picture on its own took here: its ratio is over ar of its own size.
TEST(BenchReport, BatchSizesAreReportsOfTheirOwn) {
  const auto sample = [](const char* method, std::size_t size, double ms, std::uint64_t picture) {
    BenchSample one{method, 0, 0, picture, drawn(11, 11, ms)};
    one.statistics.batch = static_cast<int>(size);
    one.batch_size = size;
    one.picture = picture;
    return one;
  };
  std::vector<BenchSample> samples{sample("ar", 1, 20, 0), sample("eagle", 1, 10, 0)};
  for (std::uint64_t picture = 0; picture < 4; ++picture) {
    samples.push_back(sample("ar", 4, 40, picture));
    samples.push_back(sample("eagle", 4, 50, picture));
  }
  const std::vector<BenchReport> reports = report(samples);
  ASSERT_EQ(reports.size(), 4U);
  EXPECT_EQ(reports[2].batch_size, 4U);
  EXPECT_EQ(reports[2].samples, 1U);
  EXPECT_EQ(reports[2].step_compression.count, 4U);  // pictures
  EXPECT_NEAR(reports[1].speedup.mean, 2, 1e-12);
  EXPECT_NEAR(reports[3].speedup.mean, 0.8, 1e-12);
  EXPECT_DOUBLE_EQ(reports[0].pictures_per_second.p50, 50);
  EXPECT_DOUBLE_EQ(reports[2].pictures_per_second.p50, 100);
  EXPECT_DOUBLE_EQ(reports[3].latency_ms.p50, 50);
}

TEST(BenchReport, TheShareKeptIsTheSpeedUpOverS) {
  Statistics five = drawn(11, 5, 10);
  five.cycles.resize(4);
  const std::vector<BenchSample> samples{{"ar", 0, 0, 1, drawn(11, 11, 15)}, {"eagle", 0, 0, 1, five}};
  const BenchReport counted = report(samples)[1];
  EXPECT_DOUBLE_EQ(counted.step_compression.mean, 11.0 / 5);
  EXPECT_DOUBLE_EQ(*counted.share_kept, 1.5 / 2.2);
  // Ten tokens in four cycles, without the prompt's pass and its token.
  const BenchReport papers = report(samples, {false})[1];
  EXPECT_DOUBLE_EQ(papers.step_compression.mean, 2.5);
  EXPECT_DOUBLE_EQ(papers.acceptance_length.mean, 2.5);
  EXPECT_DOUBLE_EQ(*papers.share_kept, 1.5 / 2.5);
}

TEST(BenchReport, PicturesAreTheUnitsOfSWhateverTheirRepeats) {
  std::vector<BenchSample> samples;
  for (int repeat = 0; repeat < 7; ++repeat) {
    for (std::size_t picture = 0; picture < 2; ++picture) {
      BenchSample sample{"eagle", repeat, picture, picture, drawn(12, picture == 0 ? 4 : 6, 10)};
      sample.picture = picture;
      samples.push_back(sample);
    }
  }
  const Interval interval = report(samples).front().step_compression;
  EXPECT_EQ(interval.count, 2U);
  EXPECT_DOUBLE_EQ(interval.mean, 2.5);
}

TEST(BenchReport, ChildrenAreCountedByRank) {
  Statistics one = drawn(9, 5, 10), other = one;
  one.cycles.resize(4);
  other.cycles.resize(6);
  one.reached = {{2, 1}, {1}};
  other.reached = {{3, 0}, {2}};
  const BenchReport result = report({{"eagle", 0, 0, 1, one}, {"eagle", 0, 1, 2, other}}).front();
  EXPECT_EQ(result.ranks, (std::vector<std::vector<double>>{{0.5, 0.1}, {0.3}}));
}

TEST(BenchReport, MemoryIsTheMostAndEnergyIsOfAPicture) {
  BenchSample one{"ar", 0, 0, 1, drawn(9, 9, 10)}, other{"ar", 0, 1, 2, drawn(9, 9, 10)};
  EXPECT_FALSE(report({one}).front().peak_bytes.has_value());
  EXPECT_FALSE(report({one}).front().joules_per_picture.has_value());
  one.peak_bytes = 100;
  other.peak_bytes = 300;
  one.joules = 8;
  other.joules = 4;
  one.statistics.batch = other.statistics.batch = 2;
  const BenchReport result = report({one, other}).front();
  EXPECT_EQ(result.peak_bytes, 300);
  EXPECT_DOUBLE_EQ(*result.joules_per_picture, 3);
}

}  // namespace
}  // namespace lamplighter
