#include "base/philox.h"

#include <gtest/gtest.h>

namespace lamplighter {
namespace {

void expect_words(PhiloxBlock block, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  EXPECT_EQ(block.word[0], a);
  EXPECT_EQ(block.word[1], b);
  EXPECT_EQ(block.word[2], c);
  EXPECT_EQ(block.word[3], d);
}

// Known answers published with the Random123 library.
TEST(Philox, MatchesKnownAnswers) {
  expect_words(philox4x32({{0, 0, 0, 0}}, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
  const std::uint32_t ones = 0xffffffff;
  expect_words(philox4x32({{ones, ones, ones, ones}}, ones, ones), 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
               0x6d5451fd);
  expect_words(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
               0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

TEST(Philox, UniformsAreMultiplesBelowOne) {
  double sum = 0;
  constexpr int count = 20000;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float u = philox_uniform(42, i, 1, 2);
    ASSERT_GE(u, 0.0F);
    ASSERT_LT(u, 1.0F);
    ASSERT_EQ(u * 16777216.0F, static_cast<float>(static_cast<std::uint32_t>(u * 16777216.0F)));
    sum += static_cast<double>(u);
  }
  EXPECT_NEAR(sum / count, 0.5, 4 * 0.2887 / 141.4);
}

TEST(Philox, EveryCoordinateMatters) {
  const float u = philox_uniform(1, 2, 3, 4, 5);
  EXPECT_NE(u, philox_uniform(2, 2, 3, 4, 5));
  EXPECT_NE(u, philox_uniform(1 + (std::uint64_t{1} << 32), 2, 3, 4, 5));
  EXPECT_NE(u, philox_uniform(1, 3, 3, 4, 5));
  EXPECT_NE(u, philox_uniform(1, 2, 4, 4, 5));
  EXPECT_NE(u, philox_uniform(1, 2, 3, 5, 5));
  EXPECT_NE(u, philox_uniform(1, 2, 3, 4, 6));
}

}  // namespace
}  // namespace lamplighter
