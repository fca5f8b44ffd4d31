#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "image/exif.h"
#include "image/formats.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const ImageText kText{{"parameters", "a boat\nSteps: 3"}, {"lamplighter", "{\"prompt\":\"\xE7\x8C\xAB\"}"}};

Image image() {
  Image image{5, 3, {}};
  for (int i = 0; i < 45; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i * 5));
  return image;
}

class ImageTest : public testing::Test {
 protected:
  ImageTest() : folder_(std::filesystem::path(testing::TempDir()) / ("image" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ImageTest() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

TEST_F(ImageTest, KindsFollowTheEnding) {
  write_image(path("a.png"), image(), kText);
  write_image(path("b"), image(), kText);
  EXPECT_EQ(read_file(path("a.png")), encode_png(image(), kText));
  EXPECT_EQ(read_file(path("b")), encode_png(image(), kText));
  write_image(path("a.JPG"), image());
  write_image(path("a.jpeg"), image());
  EXPECT_EQ(read_file(path("a.JPG")), read_file(path("a.jpeg")));
  EXPECT_EQ(read_file(path("a.JPG")).substr(0, 3), "\xFF\xD8\xFF");
}

TEST_F(ImageTest, JpegKeepsItsText) {
  write_image(path("a.jpg"), image(), kText);
  EXPECT_THAT(read_image_text(path("a.jpg")), ElementsAre(Pair("lamplighter", kText[1].second)));
  write_image(path("bare.jpg"), image());
  EXPECT_THAT(read_image_text(path("bare.jpg")), IsEmpty());
  EXPECT_THAT(error_of([&] {
                write_image(path("long.jpg"), image(), {{"lamplighter", std::string(66'000, 'x')}});
              }),
              HasSubstr("65533 bytes of text"));
  EXPECT_FALSE(std::filesystem::exists(path("long.jpg")));
}

TEST_F(ImageTest, WebpKeepsItsText) {
  if (!has_libwebp()) {
    EXPECT_THAT(refuse_image_name("a.webp"), HasSubstr("no libwebp"));
    GTEST_SKIP() << "no libwebp";
  }
  EXPECT_EQ(refuse_image_name("a.webp"), "");
  for (const std::string& text : {std::string("even"), std::string("odd"), std::string(70'000, 'x')}) {
    write_image(path("a.webp"), image(), {{"lamplighter", text}});
    EXPECT_THAT(read_image_text(path("a.webp")), ElementsAre(Pair("lamplighter", text)));
  }
  write_image(path("bare.webp"), image());
  EXPECT_THAT(read_image_text(path("bare.webp")), IsEmpty());
}

TEST_F(ImageTest, RefusesOtherKinds) {
  for (const char* name : {"a.gif", "b.TIFF", "c.avif"})
    EXPECT_THAT(refuse_image_name(name), HasSubstr("ends in .png")) << name;
  for (const char* name : {"a.png", "a.jpg", "a", "-", "/dev/stdout", "v1.5"})
    EXPECT_EQ(refuse_image_name(name), "") << name;
}

// Reading stops at the end of the file.
TEST_F(ImageTest, FilesThatAreCutOffHaveNoText) {
  for (const char* name : {"a.jpg", "a.webp"}) {
    if (!refuse_image_name(name).empty()) continue;
    write_image(path(name), image(), kText);
    const std::string whole = read_file(path(name));
    const std::size_t end = whole.find(kText[1].second) + kText[1].second.size();
    for (std::size_t size = 12; size < end; ++size) {
      write_file(path("cut"), whole.substr(0, size));
      EXPECT_THAT(read_image_text(path("cut")), IsEmpty()) << name << " " << size;
    }
  }
}

TEST(Exif, HasTextsWhereOthersLook) {
  const std::string block = encode_exif({{"parameters", "a\xF0\x9F\x98\x80"}, {"lamplighter", "{}"}});
  EXPECT_EQ(read_exif(block), "{}");
  const std::string comment("UNICODE\0\0a\xD8\x3D\xDE\x00", 14);
  EXPECT_EQ(block.substr(block.size() - comment.size()), comment);
  EXPECT_EQ(read_exif(""), "");
  EXPECT_EQ(read_exif("II*\0"), "");
  for (std::size_t size = 0; size < block.size() - comment.size(); ++size)
    EXPECT_EQ(read_exif(std::string_view(block).substr(0, size)), "") << size;
}

}  // namespace
}  // namespace lamplighter
