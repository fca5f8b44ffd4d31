#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>

#include "base/files.h"
#include "image/png_chunks.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"

namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Image gradient(int width, int height) {
  Image image{width, height, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.pixels.push_back(static_cast<std::uint8_t>(x * 9));
      image.pixels.push_back(static_cast<std::uint8_t>(y * 5));
      image.pixels.push_back(static_cast<std::uint8_t>(x + y));
    }
  }
  return image;
}

class PngFile : public testing::Test {
 protected:
  PngFile() : path_(testing::TempDir() + "png_test." + std::to_string(getpid()) + ".png") {}
  ~PngFile() override { std::filesystem::remove(path_); }

  ImageText read(const std::string& bytes) const {
    write_file(path_, bytes);
    return read_image_text(path_);
  }
  std::string message_of(const std::string& bytes) const {
    try {
      read(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::input);
      return error.what();
    }
    ADD_FAILURE() << "no error was thrown";
    return "";
  }

  std::string path_;
};

// A PNG file with an additional chunk after its header.
std::string with_chunk(std::string_view type, std::string_view data) {
  return encode_png(gradient(3, 2)).insert(33, encode_png_chunk(type, data));
}

std::string deflate(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string bytes(size, '\0');
  compress(reinterpret_cast<Bytef*>(bytes.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
           text.size());
  bytes.resize(size);
  return bytes;
}

TEST_F(PngFile, HoldsTheSizeAndCorrectChecksums) {
  const std::string bytes = encode_png(gradient(7, 5), {{"parameters", "a"}});
  ASSERT_EQ(bytes.substr(0, 8), kPngSignature);
  std::vector<std::string> types;
  for (std::size_t at = 8; at < bytes.size();) {
    const auto number = [&](std::size_t offset) {
      std::uint32_t value = 0;
      for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
      return value;
    };
    const std::uint32_t length = number(at);
    types.push_back(bytes.substr(at + 4, 4));
    EXPECT_EQ(crc32(0, reinterpret_cast<const Bytef*>(&bytes[at + 4]), length + 4), number(at + 8 + length));
    if (types.back() == "IHDR") {
      EXPECT_EQ(number(at + 8), 7U);
      EXPECT_EQ(number(at + 12), 5U);
    }
    at += 12 + length;
  }
  EXPECT_THAT(types, ElementsAre("IHDR", "iTXt", "IDAT", "IEND"));
}

TEST_F(PngFile, TextComesBack) {
  const ImageText text{
      {"parameters", "na\u00efve \u732b\nSteps: 3"}, {"lamplighter", "{\"a\": 1}"}, {"empty", ""}};
  write_png(path_, gradient(4, 4), text);
  EXPECT_EQ(read_image_text(path_), text);
}

TEST_F(PngFile, EqualImagesGiveEqualBytes) {
  EXPECT_EQ(encode_png(gradient(33, 17), {{"k", "v"}}), encode_png(gradient(33, 17), {{"k", "v"}}));
  EXPECT_NE(encode_png(gradient(33, 17), {{"k", "v"}}), encode_png(gradient(33, 17), {{"k", "w"}}));
}

TEST_F(PngFile, ReadsEveryKindOfText) {
  EXPECT_THAT(read(with_chunk("tEXt", std::string("k\0caf\xe9", 6))), ElementsAre(Pair("k", "caf\u00e9")));
  EXPECT_THAT(read(with_chunk("zTXt", std::string("k\0\0", 3) + deflate("caf\xe9"))),
              ElementsAre(Pair("k", "caf\u00e9")));
  EXPECT_THAT(read(with_chunk("iTXt", std::string("k\0\1\0en\0key\0", 11) + deflate("caf\u00e9"))),
              ElementsAre(Pair("k", "caf\u00e9")));
  EXPECT_THAT(read(encode_png(gradient(3, 2))), ElementsAre());
}

TEST_F(PngFile, RejectsMalformedText) {
  EXPECT_THAT(message_of(with_chunk("tEXt", "no zero byte")), HasSubstr("malformed"));
  EXPECT_THAT(message_of(with_chunk("iTXt", std::string("k\0\1", 3))), HasSubstr("malformed"));
  EXPECT_THAT(message_of(with_chunk("iTXt", std::string("k\0\1\0\0\0rubbish", 13))), HasSubstr("malformed"));
  EXPECT_THAT(message_of(with_chunk("iTXt", std::string("k\0\0\0\0\0\xff", 7))), HasSubstr("malformed"));
  EXPECT_THAT(message_of(with_chunk("zTXt", std::string("k\0\0", 3) + deflate(std::string(17 << 20, 'x')))),
              HasSubstr("malformed"));
  std::string bytes = with_chunk("tEXt", std::string("k\0v", 3));
  bytes[33 + 8] = 'K';
  EXPECT_THAT(message_of(bytes), HasSubstr("checksum"));
}

TEST_F(PngFile, BoundsNumberAndSumOfTexts) {
  const auto packed = [](std::size_t size) {
    return encode_png_chunk("zTXt", std::string("k\0\0", 3) + deflate(std::string(size, 'x')));
  };
  const auto with = [](const std::string& chunk, int count) {
    std::string chunks;
    for (int i = 0; i < count; ++i) chunks += chunk;
    return encode_png(gradient(3, 2)).insert(33, chunks);
  };
  const std::string large = packed(1 << 20), small = packed(1);
  EXPECT_EQ(read(with(large, 15)).size(), 15U);
  EXPECT_THAT(message_of(with(large, 16)), HasSubstr("more than 16777216 bytes"));
  EXPECT_EQ(read(with(small, 1000)).size(), 1000U);
  EXPECT_THAT(message_of(with(small, 1001)), HasSubstr("more than 1000 text chunks"));
}

TEST_F(PngFile, RejectsOtherFilesAndTruncatedOnes) {
  EXPECT_THAT(message_of(""), HasSubstr("not an image"));
  EXPECT_THAT(message_of("GIF89a"), HasSubstr("not an image"));
  const std::string bytes = encode_png(gradient(5, 5), {{"k", "v"}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(message_of(bytes.substr(0, size)), "") << size;
  EXPECT_THROW(read_image_text(path_ + ".none"), Error);
}

// A small file must not cause gigabytes of allocation.
TEST_F(PngFile, DeclaredSizesAreChecked) {
  const auto pixels = [&](const std::string& bytes) {
    write_file(path_, bytes);
    return read_png(path_).pixels;
  };
  const std::string bytes = encode_png(gradient(5, 5));
  EXPECT_EQ(pixels(bytes), gradient(5, 5).pixels);
  EXPECT_EQ(pixels(bytes + "what another program appends"), gradient(5, 5).pixels);
  const auto refused = [&](std::size_t at, const std::string& with) {
    try {
      pixels(std::string(bytes).replace(at, with.size(), with));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(refused(bytes.find("IDAT") - 4, "\x3f"), HasSubstr("a chunk is cut off"));
  EXPECT_THAT(refused(16, std::string("\0\0\x40\0\0\0\x40\0", 8)), HasSubstr("too small for its pixels"));
}

TEST_F(PngFile, RejectsImagesThatDoNotAddUp) {
  EXPECT_THROW(encode_png({}), Error);
  EXPECT_THROW(encode_png({2, 2, std::vector<std::uint8_t>(11)}), Error);
  EXPECT_THROW(encode_png({-1, -1, std::vector<std::uint8_t>(3)}), Error);
  EXPECT_THROW(encode_png({1 << 20, 1 << 20, {}}), Error);
}

TEST(ContactSheet, PlacesImagesRowByRow) {
  const auto flat = [](std::uint8_t level, int side) {
    return Image{side, side, std::vector<std::uint8_t>(static_cast<std::size_t>(side * side * 3), level)};
  };
  const Image sheet = contact_sheet({flat(1, 4), flat(2, 4), flat(3, 2)}, 2);
  EXPECT_EQ(sheet.width, 10);
  EXPECT_EQ(sheet.height, 10);
  const auto at = [&](int x, int y) {
    return sheet.pixels[static_cast<std::size_t>((y * sheet.width + x) * 3)];
  };
  EXPECT_EQ(at(0, 0), 1);
  EXPECT_EQ(at(3, 3), 1);
  EXPECT_EQ(at(4, 0), 255);  // gap
  EXPECT_EQ(at(6, 0), 2);
  EXPECT_EQ(at(9, 3), 2);
  EXPECT_EQ(at(0, 6), 255);  // the smaller image is centred in its cell
  EXPECT_EQ(at(1, 7), 3);
  EXPECT_EQ(at(2, 8), 3);
  EXPECT_EQ(at(3, 9), 255);
  EXPECT_EQ(at(9, 9), 255);  // empty cell
}

TEST(ContactSheet, NeedsImages) {
  EXPECT_THROW(contact_sheet({}, 2), Error);
  EXPECT_THROW(contact_sheet({Image{1, 1, {0, 0, 0}}}, 0), Error);
}

}  // namespace
}  // namespace lamplighter
