#include "bench/cycles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "bench/synthetic_bench.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

SyntheticShape toy() {
  SyntheticShape shape;
  shape.rows = shape.columns = 6;
  shape.sampling.cfg_scale = 3;
  return shape;
}

TEST(AcceptedAround, HasTheMeanThatWasAskedFor) {
  for (const double mean : {0.0, 0.35, 1.5, 2.0, 2.95}) {
    const std::vector<std::int64_t> counts = accepted_around(mean);
    EXPECT_NEAR(std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size()), mean,
                1e-9);
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    EXPECT_LE(*most - *least, 1);
  }
}

TEST(SyntheticBench, MeasuresEveryTreeAgainstTheSameSteps) {
  CycleOptions options;
  options.rounds = 3;
  options.block = 2;
  options.accepted = {1, 2};
  int rounds = 0;
  const SyntheticReport report =
      run_synthetic(toy(), {"chain-1", "chain-3"}, options, {}, [&](int) { return ++rounds > 0; });
  EXPECT_EQ(rounds, 3);
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_EQ(report.rows[0].name, "ar");
  EXPECT_EQ(report.rows[0].rows, 2);
  EXPECT_EQ(report.rows[2].rows, 8);
  EXPECT_EQ(report.rows[2].drafter_passes, 3);
  EXPECT_DOUBLE_EQ(report.rows[0].accepted, 0);
  EXPECT_DOUBLE_EQ(report.rows[1].accepted, 1);  // its depth
  EXPECT_DOUBLE_EQ(report.rows[2].accepted, 1.5);
  EXPECT_DOUBLE_EQ(report.rows[0].ratio.mean, 1);
  for (const SyntheticRow& row : report.rows) {
    EXPECT_EQ(row.rounds.size(), 3U);
    EXPECT_EQ(row.ratio.count, 3U);
    EXPECT_GT(row.stages.score, 0);
    EXPECT_GT(row.cycle_ms, 0);
  }
  EXPECT_GT(report.rows[2].stages.draft, 0);
  EXPECT_DOUBLE_EQ(report.rows[2].weight_bytes,
                   static_cast<double>(report.target_bytes + 3 * report.drafter_bytes));
  // Both sequences of the pair have a prompt of 3 rows and 18 codes; keys and values are 2 x 8 fp32 a layer.
  EXPECT_EQ(report.context, 3 + 18);
  EXPECT_DOUBLE_EQ(report.rows[0].cache_bytes, 2 * 21 * 2 * 2 * 16 * 4);
  EXPECT_DOUBLE_EQ(report.rows[2].cache_bytes, 2 * 21 * (2 + 3) * 2 * 16 * 4);
  EXPECT_GT(report.bandwidth, 0);
  EXPECT_DOUBLE_EQ(report.floor_ms(report.rows[1]), report.rows[1].bytes() / report.bandwidth);
  EXPECT_GT(report.peak_bytes, report.target_bytes);
}

// Prompts of tokens, normed heads, an embedding of more ids than codes, and rows that end with a token.
TEST(SyntheticBench, MeasuresTheChameleonFamily) {
  SyntheticShape shape = toy();
  shape.chameleon = shape.row_ends = true;
  shape.embedding = 40;
  shape.first_image_id = 4;
  shape.prompt_length = 5;
  shape.unconditional_length = 2;
  CycleOptions options;
  options.rounds = 2;
  options.block = 6;  // beyond the end of a row
  options.accepted = {3};
  options.stages = false;
  const SyntheticReport report = run_synthetic(shape, {"chain-3", "lantern-26"}, options, {});
  ASSERT_EQ(report.rows.size(), 3U);
  EXPECT_GT(report.rows[2].cycle_ms, 0);
  EXPECT_EQ(report.rows[2].kernels, 0);  // a graph is captured on CUDA alone
  EXPECT_EQ(report.context, 5 + 3 * 7);
  EXPECT_DOUBLE_EQ(report.rows[0].cache_bytes, (5 + 2 + 2 * 3 * 7) * 2 * 2 * 16 * 4.0);
  EXPECT_EQ(report.rows[2].stages.draft, 0);
}

TEST(SyntheticBench, StopsAndRefuses) {
  CycleOptions options;
  options.rounds = 2;
  EXPECT_THROW(run_synthetic(toy(), {"chain-2"}, options, {}, [](int) { return false; }), Error);
  EXPECT_THROW(run_synthetic(toy(), {"dynamic"}, options, {}), Error);
  EXPECT_THROW(run_synthetic(toy(), {"chain-64"}, options, {}), Error);
}

}  // namespace
}  // namespace lamplighter
