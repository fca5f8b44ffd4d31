#include <gtest/gtest.h>

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

TEST(BenchReport, SeparatesMethodsAndLeavesThePrefillOut) {
  Statistics slow, quick;
  slow.tokens = quick.tokens = 11;
  slow.target_passes = 11;
  quick.target_passes = 5;
  slow.decode_ms = 20;
  quick.decode_ms = 10;
  slow.batch = 2;
  const std::vector<BenchReport> reports =
      report({{"ar", 0, 1, slow}, {"eagle", 0, 1, quick}, {"ar", 1, 1, slow}});
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0].method, "ar");
  EXPECT_EQ(reports[0].samples, 2U);
  EXPECT_DOUBLE_EQ(reports[0].token_ms.p50, 2);
  EXPECT_DOUBLE_EQ(reports[0].tokens_per_second.p50, 1000);
  EXPECT_DOUBLE_EQ(reports[1].token_ms.p50, 1);
  EXPECT_DOUBLE_EQ(reports[1].tokens_per_pass, 2.2);
}

}  // namespace
}  // namespace lamplighter
