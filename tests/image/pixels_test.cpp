#include "image/pixels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/files.h"
#include "image/byte_order.h"
#include "image/formats.h"
#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using testing::HasSubstr;

// Files of Pillow: 24 x 16 pixels, red grows by 10 to the right, green by 15 downwards, blue is 128.
std::string pillow_file(const std::string& name) {
  return read_file(std::string(LAMPLIGHTER_SOURCE_DIR) + "/tests/image/files/" + name);
}

std::string refused_pixels(const std::string& bytes, std::uint64_t most = limits::kImagePixels) {
  return error_of(ExitCode::input, [&] { parse_image(bytes, "a", most); });
}

int farthest(const Image& image) {
  int most = 0;
  for (int y = 0; y < 16; ++y) {
    for (int x = 0; x < 24; ++x) {
      const std::uint8_t* pixel = image.pixels.data() + (y * 24 + x) * 3;
      most = std::max(
          {most, std::abs(pixel[0] - x * 10), std::abs(pixel[1] - y * 15), std::abs(pixel[2] - 128)});
    }
  }
  return most;
}

TEST(PixelsTest, JpegFilesHaveTheirColours) {
  if (!has_libjpeg()) GTEST_SKIP() << "no libjpeg";
  EXPECT_LE(farthest(parse_image(pillow_file("baseline.jpg"), "a")), 6);
  EXPECT_LE(farthest(parse_image(pillow_file("progressive.jpg"), "a")), 24);
  const Image grey = parse_image(pillow_file("grey.jpg"), "a");
  for (std::size_t i = 0; i < grey.pixels.size(); i += 3) EXPECT_EQ(grey.pixels[i], grey.pixels[i + 2]);
  EXPECT_THAT(refused_pixels(pillow_file("cmyk.jpg")), HasSubstr("CMYK colours, expected grey or RGB"));
}

TEST(PixelsTest, JpegFilesAreTurned) {
  if (!has_libjpeg()) GTEST_SKIP() << "no libjpeg";
  const Image plain = parse_image(pillow_file("baseline.jpg"), "a"),
              image = parse_image(pillow_file("turned.jpg"), "a");
  ASSERT_EQ(image.width, 16);
  ASSERT_EQ(image.height, 24);
  EXPECT_EQ(image.pixels[0], plain.pixels[15 * 24 * 3]) << "the lower left corner is the upper left one";
}

// Rows AB, CD, EF: what Pillow's exif_transpose makes of them.
TEST(PixelsTest, EveryOrientationHasItsTurn) {
  const auto letters = [](int orientation) {
    ClearImage image{2, 3, {}};
    for (const char letter : {'A', 'B', 'C', 'D', 'E', 'F'})
      image.pixels.insert(image.pixels.end(), 4, static_cast<std::uint8_t>(letter));
    const ClearImage found = turned(image, orientation);
    std::string text;
    for (std::size_t i = 0; i < found.pixels.size(); i += 4) {
      if (i > 0 && i % (4 * static_cast<std::size_t>(found.width)) == 0) text += ' ';
      text += static_cast<char>(found.pixels[i]);
    }
    return text;
  };
  EXPECT_EQ(letters(1), "AB CD EF");
  EXPECT_EQ(letters(2), "BA DC FE");
  EXPECT_EQ(letters(3), "FE DC BA");
  EXPECT_EQ(letters(4), "EF CD AB");
  EXPECT_EQ(letters(5), "ACE BDF");
  EXPECT_EQ(letters(6), "ECA FDB");
  EXPECT_EQ(letters(7), "FDB ECA");
  EXPECT_EQ(letters(8), "BDF ACE");
  EXPECT_EQ(letters(0), letters(1));
  EXPECT_EQ(letters(9), letters(1));
}

// The sides in the frame header, which begins with `marker`.
std::string with_sides(std::string jpeg, const std::string& marker, std::uint16_t width,
                       std::uint16_t height) {
  return jpeg.replace(jpeg.find(marker) + 5, 4, encode_16(height) + encode_16(width));
}

TEST(PixelsTest, JpegFilesThatAreTooSmallForTheirPixelsAreRefused) {
  if (!has_libjpeg()) GTEST_SKIP() << "no libjpeg";
  for (const auto& [name, marker] :
       {std::pair{"baseline.jpg", "\xFF\xC0"}, std::pair{"progressive.jpg", "\xFF\xC2"}}) {
    const std::string whole = pillow_file(name);
    EXPECT_THAT(refused_pixels(with_sides(whole, marker, 8000, 8000)),
                HasSubstr("damaged JPEG image: it is too small for its pixels"));
    EXPECT_THAT(refused_pixels(with_sides(whole, marker, 20000, 8)), HasSubstr("got 20000x8 pixels"));
    EXPECT_NE(refused_pixels(with_sides(whole, marker, 200, 200)), "");
    EXPECT_NE(refused_pixels(with_sides(whole, marker, 0, 16)), "");
  }
}

// A grey file as one of three channels with a scan for each; that of the last channel comes again and again.
TEST(PixelsTest, JpegFilesOfManyScansAreRefused) {
  using namespace std::string_literals;
  if (!has_libjpeg()) GTEST_SKIP() << "no libjpeg";
  const std::string grey = pillow_file("grey.jpg");
  const std::size_t frame = grey.find("\xFF\xC0"), scan = grey.find("\xFF\xDA"), rest = 13;  // of the frame
  const auto of_scans = [&](int scans) {
    std::string bytes = grey.substr(0, frame) + "\xFF\xC0\0\x11"s + grey.substr(frame + 4, 5) + "\3";
    for (const char channel : {'\1', '\2', '\3'}) bytes += channel + "\x11\0"s;
    bytes += grey.substr(frame + rest, scan - frame - rest);
    for (int i = 0; i < scans; ++i) {
      std::string next = grey.substr(scan, grey.size() - 2 - scan);
      next[5] = static_cast<char>(std::min(i, 2) + 1);
      bytes += next;
    }
    return bytes + "\xFF\xD9";
  };
  EXPECT_EQ(parse_image(of_scans(3), "a").width, 24);
  EXPECT_EQ(parse_image(of_scans(100), "a").width, 24);
  EXPECT_THAT(refused_pixels(of_scans(101)), HasSubstr("damaged JPEG image: it has more than 100 scans"));
}

TEST(PixelsTest, WebpFilesHaveTheirColours) {
  if (!has_libwebp()) GTEST_SKIP() << "no libwebp";
  EXPECT_EQ(farthest(parse_image(pillow_file("lossless.webp"), "a")), 0);
  EXPECT_LE(farthest(parse_image(pillow_file("lossy.webp"), "a")), 24);
  EXPECT_EQ(parse_clear_image(pillow_file("alpha.webp"), "a").pixels[3], 51);
  EXPECT_EQ(parse_image(pillow_file("alpha.webp"), "a").pixels[0], 204) << "on white";
  EXPECT_THAT(refused_pixels(pillow_file("animated.webp")), HasSubstr("got an animated WebP image"));
}

TEST(PixelsTest, FilesThatAreCutOffAreRefused) {
  for (const char* name : {"baseline.jpg", "progressive.jpg", "lossless.webp", "lossy.webp"}) {
    const std::string whole = pillow_file(name);
    EXPECT_THAT(refused_pixels(whole, 100), HasSubstr("24x16 pixels, expected at most 100")) << name;
    for (std::size_t size = 0; size < whole.size(); ++size)
      EXPECT_NE(refused_pixels(whole.substr(0, size)), "") << name << " " << size;
  }
}

// Bytes that are changed give an image or a message, never a crash.
TEST(PixelsTest, FilesWithOtherBytesAreReadOrRefused) {
  for (const char* name : {"baseline.jpg", "progressive.jpg", "turned.jpg", "lossless.webp", "lossy.webp"}) {
    std::string bytes = pillow_file(name);
    for (char& byte : bytes) {
      const char right = std::exchange(byte, static_cast<char>(~byte));
      refused_pixels(bytes, std::uint64_t{1} << 20);
      byte = right;
    }
  }
}

}  // namespace
}  // namespace lamplighter
