#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/report/report.h"

namespace lamplighter {
namespace {

Statistics make_statistics(std::int64_t tokens, std::int64_t passes, double ms) {
  Statistics statistics;
  statistics.tokens = tokens;
  statistics.target_passes = passes;
  statistics.decode_ms = ms;
  return statistics;
}

TEST(BenchReport, SeparatesMethodsAndLeavesThePrefillOut) {
  Statistics slow = make_statistics(11, 11, 20);
  slow.batch = 2;
  const std::vector<BenchReport> reports =
      report({{"ar", 0, 0, 1, slow}, {"eagle", 0, 0, 1, make_statistics(11, 5, 10)}, {"ar", 1, 0, 1, slow}});
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].method, "ar");
  EXPECT_EQ(reports[0].samples, 2U);
  EXPECT_DOUBLE_EQ(reports[0].token_ms.p50, 2);
  EXPECT_DOUBLE_EQ(reports[0].tokens_per_second.p50, 1000);
  EXPECT_DOUBLE_EQ(reports[1].token_ms.p50, 1);
  EXPECT_DOUBLE_EQ(reports[1].step_compression.mean, 2.2);
}

// Pairing removes slow periods of the machine, which affect both methods, from the ratio.
TEST(BenchReport, SpeedUpsArePairedByBatch) {
  std::vector<BenchSample> samples;
  for (std::size_t batch = 0; batch < 4; ++batch) {
    const double spell = batch == 2 ? 10 : 1;
    samples.push_back({"ar", 0, batch, batch, make_statistics(11, 11, 20 * spell)});
    samples.push_back({"eagle", 0, batch, batch, make_statistics(11, 5, 10 * spell)});
  }
  const Interval speedup = report(samples)[1].speedup;
  EXPECT_EQ(speedup.count, 4U);
  EXPECT_NEAR(speedup.mean, 2, 1e-12);
  EXPECT_NEAR(speedup.high, 2, 1e-9);
}

TEST(BenchReport, RepeatsAndImagesOfABatchAreNotIndependent) {
  std::vector<BenchSample> samples;
  for (int repeat = 0; repeat < 5; ++repeat) {
    for (std::size_t batch = 0; batch < 2; ++batch) {
      for (std::uint64_t image = 0; image < 3; ++image) {
        samples.push_back({"ar", repeat, batch, image, make_statistics(11, 11, 20)});
        samples.push_back({"eagle", repeat, batch, image, make_statistics(11, 5, batch == 0 ? 10 : 5)});
      }
    }
  }
  const std::vector<BenchReport> reports = report(samples);
  EXPECT_EQ(reports[1].samples, 10U);
  EXPECT_EQ(reports[1].speedup.count, 2U);
  EXPECT_NEAR(reports[1].speedup.mean, std::sqrt(8.0), 1e-12);
  // A single batch uses its repeats.
  samples.erase(std::remove_if(samples.begin(), samples.end(), [](const auto& s) { return s.batch == 1; }),
                samples.end());
  EXPECT_EQ(report(samples)[1].speedup.count, 5U);
}

// Images that start together finish one after another.
TEST(BenchReport, TheSlowestImageStandsForItsBatch) {
  const std::vector<BenchReport> reports = report({{"ar", 0, 0, 1, make_statistics(11, 11, 20)},
                                                   {"ar", 0, 0, 2, make_statistics(11, 11, 30)},
                                                   {"ar", 0, 0, 3, make_statistics(11, 11, 10)}});
  EXPECT_EQ(reports[0].samples, 1U);
  EXPECT_DOUBLE_EQ(reports[0].decode_ms.p50, 30);
}

TEST(BenchReport, SharesAndStagesArePerCycle) {
  Statistics statistics = make_statistics(9, 5, 10);
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

// A batch of four takes as long as a single image, but its ratio is relative to ar at the same batch size.
TEST(BenchReport, BatchSizesAreReportsOfTheirOwn) {
  const auto sample = [](const char* method, std::size_t size, double ms, std::uint64_t image) {
    BenchSample one{method, 0, 0, image, make_statistics(11, 11, ms)};
    one.statistics.batch = static_cast<int>(size);
    one.batch_size = size;
    one.image = image;
    return one;
  };
  std::vector<BenchSample> samples{sample("ar", 1, 20, 0), sample("eagle", 1, 10, 0)};
  for (std::uint64_t image = 0; image < 4; ++image) {
    samples.push_back(sample("ar", 4, 40, image));
    samples.push_back(sample("eagle", 4, 50, image));
  }
  const std::vector<BenchReport> reports = report(samples);
  ASSERT_EQ(reports.size(), 4U);
  EXPECT_EQ(reports[2].batch_size, 4U);
  EXPECT_EQ(reports[2].samples, 1U);
  EXPECT_EQ(reports[2].step_compression.count, 4U);  // images
  EXPECT_NEAR(reports[1].speedup.mean, 2, 1e-12);
  EXPECT_NEAR(reports[3].speedup.mean, 0.8, 1e-12);
  EXPECT_DOUBLE_EQ(reports[0].images_per_second.p50, 50);
  EXPECT_DOUBLE_EQ(reports[2].images_per_second.p50, 100);
  EXPECT_DOUBLE_EQ(reports[3].latency_ms.p50, 50);
}

TEST(BenchReport, TheShareKeptIsTheSpeedUpOverS) {
  Statistics five = make_statistics(11, 5, 10);
  five.cycles.resize(4);
  const std::vector<BenchSample> samples{{"ar", 0, 0, 1, make_statistics(11, 11, 15)},
                                         {"eagle", 0, 0, 1, five}};
  const BenchReport counted = report(samples)[1];
  EXPECT_DOUBLE_EQ(counted.step_compression.mean, 11.0 / 5);
  EXPECT_DOUBLE_EQ(*counted.share_kept, 1.5 / 2.2);
  // Ten tokens in four cycles, without the prompt's pass and its token.
  const BenchReport papers = report(samples, {false})[1];
  EXPECT_DOUBLE_EQ(papers.step_compression.mean, 2.5);
  EXPECT_DOUBLE_EQ(papers.acceptance_length.mean, 2.5);
  EXPECT_DOUBLE_EQ(*papers.share_kept, 1.5 / 2.5);
}

TEST(BenchReport, ImagesAreTheUnitsOfSWhateverTheirRepeats) {
  std::vector<BenchSample> samples;
  for (int repeat = 0; repeat < 7; ++repeat) {
    for (std::size_t image = 0; image < 2; ++image) {
      BenchSample sample{"eagle", repeat, image, image, make_statistics(12, image == 0 ? 4 : 6, 10)};
      sample.image = image;
      samples.push_back(sample);
    }
  }
  const Interval interval = report(samples).front().step_compression;
  EXPECT_EQ(interval.count, 2U);
  EXPECT_DOUBLE_EQ(interval.mean, 2.5);
}

TEST(BenchReport, ChildrenAreCountedByRank) {
  Statistics one = make_statistics(9, 5, 10), other = one;
  one.cycles.resize(4);
  other.cycles.resize(6);
  one.reached = {{2, 1}, {1}};
  other.reached = {{3, 0}, {2}};
  const BenchReport result = report({{"eagle", 0, 0, 1, one}, {"eagle", 0, 1, 2, other}}).front();
  EXPECT_EQ(result.ranks, (std::vector<std::vector<double>>{{0.5, 0.1}, {0.3}}));
}

TEST(BenchReport, MemoryIsTheMostAndEnergyIsOfAnImage) {
  BenchSample one{"ar", 0, 0, 1, make_statistics(9, 9, 10)}, other{"ar", 0, 1, 2, make_statistics(9, 9, 10)};
  EXPECT_FALSE(report({one}).front().peak_bytes.has_value());
  EXPECT_FALSE(report({one}).front().joules_per_image.has_value());
  one.peak_bytes = 100;
  other.peak_bytes = 300;
  one.joules = 8;
  other.joules = 4;
  one.statistics.batch = other.statistics.batch = 2;
  const BenchReport result = report({one, other}).front();
  EXPECT_EQ(result.peak_bytes, 300);
  EXPECT_DOUBLE_EQ(*result.joules_per_image, 3);
}

}  // namespace
}  // namespace lamplighter
