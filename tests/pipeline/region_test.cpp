#include "pipeline/region.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>

#include "lamplighter/error.h"
#include "pipeline/output/partial_image.h"

namespace lamplighter {
namespace {

// 5 x 4 tokens of 8 x 4 pixels.
Grid small_grid() {
  Grid grid;
  grid.width = 40;
  grid.height = 16;
  grid.rows = 4;
  grid.columns = 5;
  return grid;
}

std::vector<std::int32_t> all_codes() {
  std::vector<std::int32_t> codes(20);
  std::iota(codes.begin(), codes.end(), 0);
  return codes;
}

// The positions that are not kept.
std::vector<std::int32_t> missing(const Region& region) {
  const std::vector<std::int32_t> kept = kept_outside(small_grid(), region, all_codes());
  std::vector<std::int32_t> found;
  for (std::int32_t i = 0; i < 20; ++i) {
    if (kept[static_cast<std::size_t>(i)] == -1)
      found.push_back(i);
    else
      EXPECT_EQ(kept[static_cast<std::size_t>(i)], i);
  }
  return found;
}

using Positions = std::vector<std::int32_t>;

TEST(Region, HasWholeTokens) {
  for (const char* text : {"8,4,16,8", "15,7,2,2", "8,4,9,5", "15,4,9,8"})
    EXPECT_EQ(region_text(whole_tokens(small_grid(), parse_region(text, "r"))), "8,4,16,8") << text;
  EXPECT_EQ(region_text(whole_tokens(small_grid(), {39, 15, 1, 1})), "32,12,8,4");
  EXPECT_EQ(region_text(whole_tokens(small_grid(), {0, 0, 40, 16})), "0,0,40,16");
  for (const char* text :
       {"-1,0,8,8", "0,-1,8,8", "0,0,0,8", "0,0,8,-8", "33,0,8,8", "0,13,8,4", "2147483647,0,2147483647,1"})
    EXPECT_THROW(whole_tokens(small_grid(), parse_region(text, "r")), Error) << text;
}

TEST(Region, LeavesOutItsTokensOrAllBehindThem) {
  EXPECT_EQ(missing({8, 4, 16, 8}), (Positions{6, 7, 11, 12}));
  Region region{15, 7, 2, 2};
  region.behind = "redraw";
  EXPECT_EQ(missing(region), (Positions{6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(missing({32, 12, 8, 4}), (Positions{19}));
  Request request;
  request.kept = all_codes();
  request.region = region;
  EXPECT_EQ(generated_tokens(small_grid(), request), 13);
  EXPECT_EQ(generated_tokens(small_grid(), request, 6), 0);
  EXPECT_EQ(generated_tokens(small_grid(), request, 12), 5);
  request.region.reset();
  request.kept.resize(7);
  EXPECT_EQ(generated_tokens(small_grid(), request), 13);
  EXPECT_EQ(generated_tokens(small_grid(), request, 7), 0);
  EXPECT_EQ(generated_tokens(small_grid(), request, 9), 2);
}

TEST(Region, PartialImagesShowWhatIsKeptAroundIt) {
  const auto decode = [](const Codes& codes) {
    Image image{40, 16, std::vector<std::uint8_t>(std::size_t{40} * 16 * 3)};
    for (std::size_t pixel = 0; pixel < std::size_t{40} * 16; ++pixel) {
      const std::size_t token = pixel / 40 / 4 * 5 + pixel % 40 / 8;
      for (std::size_t channel = 0; channel < 3; ++channel)
        image.pixels[3 * pixel + channel] = static_cast<std::uint8_t>(codes.ids[token]);
    }
    return image;
  };
  Request request;
  request.kept = all_codes();
  request.region = Region{8, 4, 16, 8};  // tokens 6, 7, 11 and 12
  std::vector<std::int32_t> known = all_codes();
  known.resize(11);
  known[6] = 60, known[7] = 70;
  const Image image = decode_part(known, small_grid(), request, decode);
  const auto value = [&](std::size_t token) {
    return image.pixels[3 * (token / 5 * 4 * 40 + token % 5 * 8 + 41)];
  };
  for (std::size_t token = 0; token < 20; ++token) {
    const std::size_t expected = token == 6 || token == 7     ? token * 10
                                 : token == 11 || token == 12 ? 128
                                                              : token;
    EXPECT_EQ(value(token), expected) << token;
  }
}

TEST(Region, IsAPartOfAWholeImage) {
  std::vector<std::int32_t> codes = all_codes();
  EXPECT_THROW(kept_outside(small_grid(), {0, 0, 40, 16}, codes), Error);
  codes.pop_back();
  EXPECT_THROW(kept_outside(small_grid(), {8, 4, 8, 4}, codes), Error);
}

}  // namespace
}  // namespace lamplighter
