#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "image/canvas.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"

namespace lamplighter {
namespace {

using testing::Each;
using testing::ElementsAreArray;

// Slopes that wrap, and a pattern of single pixels.
Image pattern() {
  Image image{7, 5, {}};
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 7; ++x) {
      image.pixels.push_back(static_cast<std::uint8_t>(x * 37 + y * 91));
      image.pixels.push_back(static_cast<std::uint8_t>(x * x * 29 + y * 13));
      image.pixels.push_back((x + y) % 2 != 0 ? 255 : 0);
    }
  }
  return image;
}

// The red parts of a row.
std::vector<int> reds(const Image& image, int y) {
  std::vector<int> row;
  for (int x = 0; x < image.width; ++x)
    row.push_back(image.pixels[static_cast<std::size_t>((y * image.width + x) * 3)]);
  return row;
}

// Stripes of one pixel, numbered from 1.
Image stripes(int width, int height, bool upright) {
  Image image{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x)
      image.pixels.insert(image.pixels.end(), 3, static_cast<std::uint8_t>(1 + (upright ? x : y)));
  }
  return image;
}

// Recorded from Pillow's resize with Resampling.LANCZOS.
TEST(Fit, ScalesAsPillowDoes) {
  const Image small = fit_image(pattern(), 3, 2, Fit::stretch);
  EXPECT_THAT(small.pixels, ElementsAreArray({91, 32, 126, 128, 126, 128, 139, 163, 126, 115, 72, 126, 114,
                                              120, 128, 123, 122, 126}));
  const Image large = fit_image(pattern(), 9, 6, Fit::stretch);
  const std::vector<std::uint8_t> middle(large.pixels.begin() + 54, large.pixels.begin() + 108);
  EXPECT_THAT(middle, ElementsAreArray({174, 21,  91,  221, 27,  148, 152, 109, 133, 68,  115, 100, 104, 26,
                                        164, 140, 174, 100, 79,  247, 133, 43,  156, 148, 82,  30,  91,  110,
                                        31,  91,  156, 37,  148, 89,  119, 133, 2,   122, 100, 39,  36,  164,
                                        91,  214, 100, 148, 255, 133, 201, 189, 148, 220, 37,  91}));
}

TEST(Fit, AnImageOfTheSizeStaysAsItIs) {
  for (const Fit fit : {Fit::crop, Fit::pad, Fit::stretch})
    EXPECT_EQ(fit_image(pattern(), 7, 5, fit).pixels, pattern().pixels);
}

TEST(Fit, OneColourStaysOne) {
  const Image flat = make_canvas(11, 4, {3, 128, 254});
  for (const auto& [width, height] : {std::pair{40, 40}, {2, 2}, {5, 300}, {300, 1}}) {
    for (const Fit fit : {Fit::crop, Fit::stretch})
      EXPECT_EQ(fit_image(flat, width, height, fit).pixels, make_canvas(width, height, {3, 128, 254}).pixels);
  }
}

TEST(Fit, CropKeepsTheMiddle) {
  const Image wide = fit_image(stripes(8, 4, true), 4, 4, Fit::crop);
  EXPECT_THAT(reds(wide, 0), ElementsAreArray({3, 4, 5, 6}));
  EXPECT_EQ(wide.height, 4);
  const Image odd = fit_image(stripes(7, 4, true), 4, 4, Fit::crop);
  EXPECT_THAT(reds(odd, 3), ElementsAreArray({2, 3, 4, 5}));
  const Image tall = fit_image(stripes(3, 9, false), 3, 3, Fit::crop);
  EXPECT_THAT(reds(tall, 0), Each(4));
  EXPECT_THAT(reds(tall, 2), Each(6));
}

TEST(Fit, PadPutsWhiteBeside) {
  const Image padded = fit_image(stripes(2, 4, true), 5, 4, Fit::pad);
  EXPECT_THAT(reds(padded, 0), ElementsAreArray({255, 1, 2, 255, 255}));
  const Image black = fit_image(make_canvas(20, 10, {0, 0, 0}), 8, 8, Fit::pad);
  EXPECT_THAT(reds(black, 1), Each(255));
  EXPECT_THAT(reds(black, 2), Each(0));
  EXPECT_THAT(reds(black, 5), Each(0));
  EXPECT_THAT(reds(black, 6), Each(255));
}

// What lies outside the crop is never computed: covering a square takes four million columns here.
TEST(Fit, NarrowImagesTakeLittle) {
  Image line = make_canvas(16384, 1, {0, 0, 0});
  fill(line, {8184, 0, 16, 1}, {200, 200, 200});
  const Image square = fit_image(line, 256, 256, Fit::crop);
  EXPECT_THAT(square.pixels, Each(200));
  const Image padded = fit_image(line, 256, 256, Fit::pad);
  EXPECT_EQ(std::count(padded.pixels.begin(), padded.pixels.end(), 255), 3 * 256 * 255);
}

TEST(Fit, SizesHaveBounds) {
  for (const auto& [width, height] : {std::pair{0, 4}, {4, -1}, {16385, 4}})
    EXPECT_THROW(fit_image(pattern(), width, height, Fit::crop), Error);
  EXPECT_THROW(fit_image({0, 4, {}}, 4, 4), Error);
  EXPECT_THROW(fit_image({2, 1, {1, 2, 3}}, 4, 4), Error);
}

}  // namespace
}  // namespace lamplighter
