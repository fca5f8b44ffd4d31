#include "image/acceptance_map.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "image/canvas.h"
#include "lamplighter/error.h"
#include "tests/image/pixels.h"

namespace lamplighter {
namespace {

using test::kRed, test::pixel;

constexpr Colour kBlue{0, 0, 255}, kWhite{255, 255, 255};
constexpr Colour kDarkest{68, 1, 84}, kBrightest{253, 231, 37};

TEST(Canvas, FillsWhatLiesInside) {
  Image image = make_canvas(4, 3, kWhite);
  fill(image, {-2, 1, 4, 9}, kRed);
  EXPECT_EQ(pixel(image, 1, 0), kWhite);
  EXPECT_EQ(pixel(image, 0, 1), kRed);
  EXPECT_EQ(pixel(image, 1, 2), kRed);
  EXPECT_EQ(pixel(image, 2, 2), kWhite);
  fill(image, {9, 9, 5, 5}, kBlue);
  fill(image, {1, 1, -3, 2}, kBlue);
  EXPECT_EQ(image.pixels.size(), 36U);
  EXPECT_EQ(pixel(image, 3, 2), kWhite);
}

TEST(Canvas, PastesWhatLiesInside) {
  Image patch = make_canvas(2, 2, kRed);
  fill(patch, {1, 1, 1, 1}, kBlue);
  Image image = make_canvas(3, 3, kWhite);
  paste(patch, image, -1, -1);
  EXPECT_EQ(pixel(image, 0, 0), kBlue);
  EXPECT_EQ(pixel(image, 1, 0), kWhite);
  paste(patch, image, 2, 2);
  EXPECT_EQ(pixel(image, 2, 2), kRed);
  EXPECT_EQ(pixel(image, 1, 2), kWhite);
}

TEST(AcceptanceMap, ShowsTheImageBesideItsCells) {
  const Image map = acceptance_map({{make_canvas(40, 40, kRed), 2, 2, {1, 3, 3, 3}}});
  EXPECT_EQ(pixel(map, 0, 0), kRed);
  EXPECT_EQ(pixel(map, 39, 39), kRed);
  EXPECT_EQ(pixel(map, 41, 5), kWhite);  // the gap
  EXPECT_EQ(pixel(map, 44, 0), kDarkest);
  EXPECT_EQ(pixel(map, 63, 19), kDarkest);
  EXPECT_EQ(pixel(map, 64, 0), kBrightest);
  EXPECT_EQ(pixel(map, 44, 20), kBrightest);
  EXPECT_EQ(pixel(map, 83, 39), kBrightest);
  EXPECT_EQ(map.width, 84);
}

TEST(AcceptanceMap, NumbersTheFieldsOfItsBar) {
  const Image map = acceptance_map({{make_canvas(100, 40, kRed), 1, 3, {1, 2, 3}}});
  const int top = 40 + 12;
  EXPECT_EQ(pixel(map, 12, top), kDarkest);
  EXPECT_EQ(pixel(map, 12 + 24, top + 11), (Colour{35, 144, 140}));  // halfway between two steps
  EXPECT_EQ(pixel(map, 12 + 48, top), kBrightest);
  EXPECT_EQ(pixel(map, 12 + 72, top), kWhite);
  // The "1" is centred below the first field.
  const auto is_ink = [&](int x) {
    bool ink = false;
    for (int y = top + 12; y < map.height; ++y) ink = ink || pixel(map, x, y) != kWhite;
    return ink;
  };
  EXPECT_TRUE(is_ink(12 + 12));
  EXPECT_FALSE(is_ink(12 + 2) || is_ink(12 + 22));
  EXPECT_EQ(map.height, top + 12 + 13 + 12);
}

TEST(AcceptanceMap, HasALineOfWords) {
  const std::vector<AcceptanceGrid> grids{{make_canvas(100, 40, kRed), 1, 3, {1, 2, 3}}};
  const Image bare = acceptance_map(grids), map = acceptance_map(grids, "eagle chain-3");
  ASSERT_GT(map.height, bare.height);
  int ink = 0;
  for (int y = bare.height - 12; y < map.height; ++y)
    for (int x = 0; x < map.width; ++x) ink += pixel(map, x, y) != kWhite;
  EXPECT_GT(ink, 50);
  EXPECT_EQ(map.height, acceptance_map_extent(1, {100, 40}).height);
}

TEST(AcceptanceMap, WrapsWords) {
  const std::vector<AcceptanceGrid> grids{{make_canvas(64, 40, kRed), 1, 3, {1, 2, 3}}};
  const std::string words = "eagle chain-4: 12 tokens in 6 target passes, S = 2.00";
  for (const Typeface typeface : {Typeface::dots, Typeface::helvetica}) {
    const Figure figure = acceptance_figure(grids, words, typeface);
    EXPECT_EQ(figure.width, 132);
    std::string all;
    double bottom = 0;
    for (const Figure::Part& part : figure.parts) {
      const auto* const text = std::get_if<Figure::Text>(&part);
      if (text == nullptr || text->anchor == Anchor::middle) continue;  // numbers of the bar
      EXPECT_LE(text->x + width_of(text->words, typeface, text->size), figure.width - 12);
      EXPECT_GT(text->top, bottom);
      all += (all.empty() ? "" : " ") + text->words;
      bottom = text->top + text->size;
    }
    EXPECT_EQ(all, words);
    EXPECT_EQ(figure.height, bottom + 12);
  }
}

TEST(AcceptanceMap, LeavesFewPlacesEmpty) {
  const AcceptanceGrid grid{make_canvas(20, 20, kRed), 1, 1, {1}};
  for (const auto& [count, across, down] :
       {std::array{1, 1, 1}, {2, 2, 1}, {3, 1, 3}, {4, 2, 2}, {5, 3, 2}, {6, 3, 2}, {8, 2, 4}, {9, 3, 3}}) {
    const Image map = acceptance_map(std::vector<AcceptanceGrid>(static_cast<std::size_t>(count), grid));
    EXPECT_EQ(map.width, across * (44 + 12) - 12) << count;
    const Extent extent = acceptance_map_extent(count, {20, 20});
    EXPECT_EQ(extent.width, map.width) << count;
    EXPECT_EQ(extent.height, acceptance_map_extent(1, {20, 20}).height + (down - 1) * (20 + 12)) << count;
  }
}

TEST(AcceptanceMap, LabelsPairs) {
  AcceptanceGrid grid{make_canvas(100, 40, kRed), 1, 3, {1, 2, 3}};
  const double bare = acceptance_figure({grid}).height;
  grid.label = "sjd\nS = 2.31";
  const Figure figure = acceptance_figure({grid, grid}, "", Typeface::helvetica, 1);
  EXPECT_EQ(figure.height, 2 * bare + 2 * 2 * 13 + 12 - 49);  // one bar
  int labels = 0;
  for (const Figure::Part& part : figure.parts) {
    const auto* const text = std::get_if<Figure::Text>(&part);
    labels += text != nullptr && (text->words == "sjd" || text->words == "S = 2.31");
  }
  EXPECT_EQ(labels, 4);
}

TEST(GrowthStrips, WordsStayBelowTheirImages) {
  const auto labels = [](int side) {
    std::string all;
    for (const Figure::Part& part : growth_figure({{make_canvas(side, 8, kRed), 1, 2, {1, 1}}}).parts) {
      if (const auto* const text = std::get_if<Figure::Text>(&part)) all += text->words + ";";
    }
    return all;
  };
  EXPECT_EQ(labels(100).substr(0, 12), "pass 1 of 2;");
  EXPECT_EQ(labels(30).substr(0, 4), "1/2;");
  EXPECT_EQ(labels(8), "1;");  // of the bar
}

TEST(GrowthStrips, ShowWhatIsKnownAfterEverySixthOfThePasses) {
  // After the passes there are 1, 2, 4, 5, 6 and 8 tokens.
  const AcceptanceGrid grid{make_canvas(40, 20, kRed), 2, 4, {1, 1, 2, 2, 1, 1, 2, 2}};
  const Image strips = growth_strips({grid}, "words");
  constexpr std::array<int, 6> known{1, 2, 4, 5, 6, 8};
  for (int moment = 0; moment < 6; ++moment) {
    for (int cell = 0; cell < 8; ++cell) {
      const int left = moment * (40 + 4) + cell % 4 * 10 + 5, top = cell / 4 * 10 + 5;
      const bool is_known = cell < known[static_cast<std::size_t>(moment)];
      EXPECT_EQ(pixel(strips, left, top) == kRed, is_known) << moment << " " << cell;
      EXPECT_EQ(pixel(strips, left, 24 + top) != kWhite, is_known) << moment << " " << cell;
    }
  }
  EXPECT_EQ(pixel(strips, 5 * 44 + 5, 24 + 5), kDarkest);
  EXPECT_EQ(pixel(strips, 5 * 44 + 35, 24 + 15), kBrightest);
  EXPECT_EQ(strips.width, growth_strips_extent(1, {40, 20}).width);
  EXPECT_EQ(strips.height, growth_strips_extent(1, {40, 20}).height);
}

// After the passes there are 1, 2, 3 and 6 tokens.
TEST(AcceptanceMap, CellsMayHaveAnotherOrder) {
  Result result;
  result.image = make_canvas(30, 20, kRed);
  result.codes = {2, 3, {}};
  result.statistics.order = {0, 1, 4, 2, 5, 3};
  result.statistics.cycles = {{1, 1}, {2, 1}, {3, 3}};
  const AcceptanceGrid grid = acceptance_grid(result);
  EXPECT_EQ(grid.committed, (std::vector<std::int64_t>{1, 1, 3, 3, 1, 3}));
  const Image strips = growth_strips({grid});
  const int left = 3 * (30 + 4);  // the fourth of six steps: after two of four passes
  EXPECT_EQ(pixel(strips, left + 15, 5), kRed);
  EXPECT_NE(pixel(strips, left + 25, 5), kRed);
  EXPECT_NE(pixel(strips, left + 15, 15), kRed);
  const int later = 4 * (30 + 4);  // after three passes
  EXPECT_NE(pixel(strips, later + 25, 5), kRed);
  EXPECT_EQ(pixel(strips, later + 15, 15), kRed);
}

// Two codes of the smaller image in front, then the cells in another order than by rows.
TEST(AcceptanceMap, LeavesOutTheSmallerImageInFront) {
  Result result;
  result.codes = {3, 2, {}, {8, 9}};
  result.statistics.order = {0, 1, 2, 3, 4, 5, 7, 6};
  result.statistics.cycles = {{1, 2}, {3, 4}, {7, 1}};  // the first one begins in front
  AcceptanceGrid grid = acceptance_grid(result);
  EXPECT_EQ(grid.committed, (std::vector<std::int64_t>{2, 4, 4, 4, 1, 4}));
  EXPECT_EQ(grid.order, (std::vector<std::int64_t>{0, 1, 2, 3, 5, 4}));
  EXPECT_EQ(grid.first, 1);
  result.statistics.cycles = {{1, 1}, {2, 4}, {6, 2}};  // the second one begins with the image
  EXPECT_EQ(acceptance_grid(result).first, 4);
}

TEST(AcceptanceMap, WordsGrowWithTheImages) {
  const AcceptanceGrid grid{make_canvas(512, 256, kRed), 1, 3, {1, 2, 3}};
  const Image map = acceptance_map({grid}, "eagle");
  EXPECT_EQ(map.height - 256, 4 * (acceptance_map_extent(1, {100, 100}).height - 100));
  EXPECT_EQ(map.height, acceptance_map_extent(1, {512, 256}).height);
  EXPECT_EQ(pixel(map, 4 * 12, 256 + 4 * 12), kDarkest);
  EXPECT_EQ(pixel(map, 4 * (12 + 48), 256 + 4 * 12), kBrightest);
}

TEST(GrowthStrips, TakeImagesOfOnePass) {
  EXPECT_EQ(growth_strips({{make_canvas(8, 8, kRed), 1, 1, {1}}}).width, 6 * 8 + 5 * 4);
}

TEST(AcceptanceMap, OneScaleForAllImages) {
  const AcceptanceGrid slow{make_canvas(20, 20, kRed), 1, 1, {1}},
      fast{make_canvas(20, 20, kBlue), 1, 1, {5}};
  const Image map = acceptance_map({slow, fast});
  EXPECT_EQ(pixel(map, 24, 0), kDarkest);
  EXPECT_EQ(pixel(map, 44 + 12, 0), kBlue);
  EXPECT_EQ(pixel(map, 44 + 12 + 24, 0), kBrightest);
  EXPECT_EQ(pixel(acceptance_map({slow}), 24, 0), kDarkest);
}

TEST(AcceptanceMap, ManyTokensAtOnceFitTheBar) {
  std::vector<std::int64_t> counts;
  for (std::int64_t i = 1; i <= 64; ++i) counts.push_back(i);
  const Image map = acceptance_map({{make_canvas(64, 64, kRed), 8, 8, counts}});
  EXPECT_EQ(pixel(map, 12, 64 + 12), kDarkest);
  EXPECT_EQ(pixel(map, 12 + 63, 64 + 12), kBrightest);
}

TEST(AcceptanceMap, RefusesCellsThatDoNotFit) {
  EXPECT_THROW(acceptance_map({}), Error);
  EXPECT_THROW(acceptance_map({{make_canvas(8, 8, kRed), 2, 2, {1, 1, 1}}}), Error);
  EXPECT_THROW(acceptance_map({{make_canvas(8, 8, kRed), 1, 1, {0}}}), Error);
  EXPECT_THROW(acceptance_map({{make_canvas(8, 8, kRed), 1, 2, {1, 1}, {0}}}), Error);
}

}  // namespace
}  // namespace lamplighter
