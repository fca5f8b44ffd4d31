#include "bundle/manifest/guidance.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lamplighter {
namespace {

SamplingOptions guided(float scale, std::int64_t interval = -1) {
  SamplingOptions sampling;
  sampling.cfg_scale = scale;
  sampling.cfg_interval = interval;
  return sampling;
}

// 2 rows of 3 codes after a header of 3 ids.
Grid grid(bool row_ends = true) {
  Grid grid;
  grid.rows = 2;
  grid.columns = 3;
  grid.before = {1, 2, 3};
  if (row_ends) grid.row_end = {4};
  return grid;
}

GuidanceSchedule decay(double floor, double share, bool raise = false) {
  GuidanceSchedule schedule;
  schedule.kind = "decay";
  schedule.floor = floor;
  schedule.share = share;
  schedule.raise = raise;
  return schedule;
}

TEST(Guidance, IsConstantByDefault) {
  EXPECT_EQ(guidance_scales({}, grid(), guided(3), 4), (std::vector<float>{3, 3, 3, 3}));
  EXPECT_EQ(guidance_scales({}, grid(), guided(0.5F), 2), (std::vector<float>{1, 1}));
  EXPECT_FALSE(guidance_varies({}, guided(3)));
  EXPECT_FALSE(guidance_varies({}, guided(1, 2)));
}

// LlamaGen guides the first token and steps 0 .. n after it.
TEST(Guidance, EndsBehindAnInterval) {
  EXPECT_TRUE(guidance_varies({}, guided(3, 0)));
  EXPECT_EQ(guidance_scales({}, grid(), guided(3, 1), 5), (std::vector<float>{3, 3, 3, 1, 1}));
  EXPECT_EQ(guidance_scales({}, grid(), guided(3, 0), 2), (std::vector<float>{3, 3}));
  // Also accepts an interval beyond the end.
  EXPECT_EQ(guidance_scales({}, grid(), guided(3, 7), 10), std::vector<float>(10, 3));
}

// MAR counts the token after the last one, too.
TEST(Guidance, GrowsWithTheShareThatIsGenerated) {
  GuidanceSchedule linear;
  linear.kind = "linear";
  Grid grid;
  grid.rows = grid.columns = 8;
  const std::vector<float> scales = guidance_scales(linear, grid, guided(3), 66);
  EXPECT_EQ(scales[0], 1.03125F);
  EXPECT_EQ(scales[1], 1.0625F);
  for (std::size_t k = 62; k < 66; ++k) EXPECT_EQ(scales[k], 2.96875F) << k;
  EXPECT_TRUE(guidance_varies(linear, guided(3)));
  EXPECT_FALSE(guidance_varies(linear, guided(1)));
  EXPECT_EQ(guidance_scales(linear, grid, guided(1), 2), (std::vector<float>{1, 1}));
  EXPECT_EQ(guidance_scales(linear, grid, guided(3, 0), 4), (std::vector<float>{1.03125F, 1.0625F, 1, 1}));
}

// Every id advances the schedule, also the end of a row.
TEST(Guidance, DecaysIdByIdToTheFloor) {
  const double divisor = 18;  // 3 * 6 codes
  double scale = 8;
  std::vector<float> expected;
  for (int step = 2; step < 9; ++step) {
    scale = std::max(2.0, scale * (1 - step / divisor));
    if (step != 5) expected.push_back(static_cast<float>(scale));  // the end of the first row
  }
  const std::vector<float> scales = guidance_scales(decay(2, 3), grid(), guided(8), 6);
  EXPECT_EQ(scales, expected);
  EXPECT_EQ(scales.back(), 2);
  EXPECT_NE(guidance_scales(decay(2, 3), grid(false), guided(8), 6), expected);
}

TEST(Guidance, AFactorBelowZeroIsTheFloor) {
  EXPECT_EQ(guidance_scales(decay(4, 0.25), grid(), guided(9), 6), std::vector<float>(6, 4));
}

TEST(Guidance, AScaleBelowTheFloorStaysUnlessItIsRaised) {
  for (const float scale : {1.5F, 4.0F}) {
    EXPECT_FALSE(guidance_varies(decay(4, 1), guided(scale)));
    EXPECT_EQ(guidance_scales(decay(4, 1), grid(), guided(scale), 3), std::vector<float>(3, scale));
    EXPECT_FALSE(guidance_varies(decay(4, 1, true), guided(scale)));
    EXPECT_EQ(guidance_scales(decay(4, 1, true), grid(), guided(scale), 3), std::vector<float>(3, 4));
  }
  EXPECT_EQ(guidance_scales(decay(4, 1, true), grid(), guided(1), 2), (std::vector<float>{1, 1}));
  EXPECT_TRUE(guidance_varies(decay(4, 1), guided(5)));
}

TEST(Guidance, DecayEndsBehindAnIntervalToo) {
  std::vector<float> scales = guidance_scales(decay(2, 3), grid(), guided(8), 6);
  std::fill(scales.begin() + 3, scales.end(), 1.0F);
  EXPECT_EQ(guidance_scales(decay(2, 3), grid(), guided(8, 1), 6), scales);
}

}  // namespace
}  // namespace lamplighter
