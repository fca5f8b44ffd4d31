#include "measure/cycles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "bench/methods.h"
#include "bench/synthetic_bench.h"
#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

SyntheticShape toy() {
  SyntheticShape shape;
  shape.rows = shape.columns = 6;
  shape.sampling.cfg_scale = 3;
  return shape;
}

// EAGLE with each of these trees, the baseline first.
std::vector<BenchMethod> trees(const std::vector<std::string>& names) {
  std::vector<std::string> methods;
  for (const std::string& name : names) methods.push_back("eagle:tree=" + name);
  return bench_methods(methods);
}

TEST(AcceptedAround, HasTheRequestedMean) {
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
  const SyntheticReport report = run_synthetic(toy(), trees({"chain-1", "chain-3"}), {1}, options, {},
                                               [&](int) { return ++rounds > 0; });
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
  // Both guided sequences have 3 prompt tokens and 18 codes; keys and values are 2 x 8 fp32 per layer.
  EXPECT_EQ(report.context, 3 + 18);
  EXPECT_DOUBLE_EQ(report.rows[0].cache_bytes, 2 * 21 * 2 * 2 * 16 * 4);
  EXPECT_DOUBLE_EQ(report.rows[2].cache_bytes, 2 * 21 * (2 + 3) * 2 * 16 * 4);
  EXPECT_GT(report.bandwidth, 0);
  EXPECT_DOUBLE_EQ(report.floor_ms(report.rows[1]), report.rows[1].bytes() / report.bandwidth);
  EXPECT_GT(report.peak_bytes, report.target_bytes);
}

// Token prompts, norms of heads, more ids than codes in the embedding, and row-end tokens.
TEST(SyntheticBench, MeasuresTheChameleonFamily) {
  SyntheticShape shape = toy();
  shape.chameleon = shape.row_ends = true;
  shape.embedding = 40;
  shape.first_image_id = 4;
  shape.prompt_length = 5;
  shape.unconditional_length = 2;
  CycleOptions options;
  options.rounds = 2;
  options.block = 6;  // longer than a row
  options.accepted = {3};
  options.stages = false;
  const SyntheticReport report = run_synthetic(shape, trees({"chain-3", "lantern-26"}), {1}, options, {});
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
  EXPECT_THROW(run_synthetic(toy(), trees({"chain-2"}), {1}, options, {}, [](int) { return false; }), Error);
  for (const char* method : {"eagle:tree=dynamic", "eagle:tree=chain-64", "eagle-2", "lantern", "self",
                             "zipar", "medusa", "eagle:rule=lantern"})
    EXPECT_THROW(run_synthetic(toy(), bench_methods({method}), {1}, options, {}), Error) << method;
}

// Weights, or caches of all methods and images, which no machine holds.
TEST(SyntheticBench, WhatDoesNotFitIsRefusedAtOnce) {
  CycleOptions options;
  SyntheticShape deep = toy();
  deep.layers = 1 << 30;
  EXPECT_THAT(
      error_of(ExitCode::memory, [&] { run_synthetic(deep, trees({"chain-1"}), {1}, options, {}); }),
      AllOf(HasSubstr("random weights and caches of 2 methods need"), ContainsRegex("layers [0-9]+ fits")));
  // Weights of kilobytes; caches of two guided sequences with 39 rows of 4 x 16 numbers an image.
  constexpr int kImages = 1 << 30;
  EXPECT_THAT(
      error_of(ExitCode::memory, [&] { run_synthetic(toy(), trees({"chain-1"}), {kImages}, options, {}); }),
      HasSubstr("fewer layers do not fit either"));
}

TEST(SyntheticBench, EndsAfterSoMuchTime) {
  CycleOptions options;
  options.rounds = 1000;
  options.most_ms = 0;
  const SyntheticReport report = run_synthetic(toy(), trees({"chain-1"}), {1}, options, {});
  for (const SyntheticRow& row : report.rows) EXPECT_EQ(row.rounds.size(), 1U);
}

// A drafter of the size of a large model's layer and embedding is not made for methods without one.
TEST(SyntheticBench, MakesTheDrafterOnlyWhereAMethodDraftsWithIt) {
  CycleOptions options;
  options.rounds = 1;
  EXPECT_EQ(run_synthetic(toy(), bench_methods({"sjd:tree=chain-2"}), {1}, options, {}).drafter_bytes, 0);
  EXPECT_GT(run_synthetic(toy(), trees({"chain-2"}), {1}, options, {}).drafter_bytes, 0);
}

// A window needs no draft model. If a draft model fills its first positions, it runs a pass for each.
TEST(SyntheticBench, MeasuresWindowsAndBatches) {
  CycleOptions options;
  options.rounds = 2;
  options.accepted = {2};
  const auto methods =
      bench_methods({"sjd:tree=chain-3", "eagle+sjd:tree=chain-5:front=2", "sjd-pac:tree=fan-3-2-7"});
  const SyntheticReport report = run_synthetic(toy(), methods, {1, 3}, options, {});
  ASSERT_EQ(report.rows.size(), 8U);
  for (std::size_t i = 0; i < 4; ++i) {
    const SyntheticRow &alone = report.rows[i], &batch = report.rows[4 + i];
    EXPECT_EQ(alone.name, batch.name);
    EXPECT_EQ(alone.batch_size, 1);
    EXPECT_EQ(batch.batch_size, 3);
    EXPECT_EQ(batch.rows, 3 * alone.rows);
    EXPECT_EQ(batch.drafter_passes, i == 2 ? 2 : 0);
    EXPECT_DOUBLE_EQ(batch.weight_bytes, alone.weight_bytes);
    EXPECT_DOUBLE_EQ(batch.cache_bytes, 3 * alone.cache_bytes);
    EXPECT_DOUBLE_EQ(batch.decode_ms, batch.cycle_ms * 36 / (i == 0 ? 1 : 3));
    EXPECT_DOUBLE_EQ(batch.images_per_second(), 3000 / batch.decode_ms);
    if (batch.name == "ar") {
      EXPECT_DOUBLE_EQ(batch.ratio.mean, 1);
    }  // relative to ar at the same batch size
  }
}

}  // namespace
}  // namespace lamplighter
