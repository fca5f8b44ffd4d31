#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>

#include "base/files.h"
#include "image/byte_order.h"
#include "image/pixels.h"
#include "image/png_chunks.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "tests/error_of.h"

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
    return error_of(ExitCode::input, [&] { read(bytes); });
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

// A PNG file of these packed rows; `more`: chunks in front of them.
std::string png(std::uint32_t width, std::uint32_t height, char depth, char colours, const std::string& rows,
                const std::string& more = "", char interlaced = 0) {
  const std::string head = encode_32(width) + encode_32(height) + depth + colours + '\0' + '\0' + interlaced;
  return std::string(kPngSignature) + encode_png_chunk("IHDR", head) + more +
         encode_png_chunk("IDAT", deflate(rows)) + encode_png_chunk("IEND", "");
}

std::string pixels_refused(const std::string& bytes) {
  return error_of(ExitCode::input, [&] { parse_image(bytes, "a.png"); });
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
    return read_image(path_).pixels;
  };
  const std::string bytes = encode_png(gradient(5, 5));
  EXPECT_EQ(pixels(bytes), gradient(5, 5).pixels);
  EXPECT_EQ(pixels(bytes + "what another program appends"), gradient(5, 5).pixels);
  const auto refused = [&](std::size_t at, const std::string& with) {
    return error_of([&] { pixels(std::string(bytes).replace(at, with.size(), with)); });
  };
  EXPECT_THAT(refused(bytes.find("IDAT") - 4, "\x3f"), HasSubstr("a chunk is cut off"));
  EXPECT_THAT(refused(16, std::string("\0\0\x40\0\0\0\x40\0", 8)), HasSubstr("too small for its pixels"));
}

TEST_F(PngFile, PixelsOfDamagedFilesAreRefused) {
  const std::string bytes = encode_png(gradient(5, 5), {{"k", "v"}});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(pixels_refused(bytes.substr(0, size)), "") << size;
  EXPECT_THAT(pixels_refused(bytes.substr(0, bytes.size() - 12)),
              HasSubstr("damaged PNG image: it is cut off"));
  std::string changed = bytes;
  changed[bytes.find("IDAT") + 9] ^= 1;
  EXPECT_THAT(pixels_refused(changed), HasSubstr("the checksum of a chunk is wrong"));
  EXPECT_THAT(pixels_refused(png(8192, 8193, 1, 0, "", std::string(10 << 10, ' '))),
              HasSubstr("got 8192x8193 pixels, expected at most 67108864; make it smaller"));
}

// A small file must not unpack to gigabytes.
TEST_F(PngFile, DataBehindThePixelsAreRefused) {
  const std::string row(3, '\0');
  EXPECT_EQ(parse_image(png(2, 1, 8, 0, row + "abc"), "a.png").pixels.size(), 6U);
  EXPECT_THAT(pixels_refused(png(2, 1, 8, 0, row + std::string(std::size_t{64} << 20, 'a'))),
              HasSubstr("it has more data than its pixels need"));
  EXPECT_THAT(pixels_refused(png(2, 1, 8, 3, row + std::string(100, 'a'))), HasSubstr("more data"));
}

TEST_F(PngFile, DataThatAreNoZlibStreamAreRefused) {
  const std::string bytes = png(2, 1, 8, 0, std::string(3, '\0'));
  const std::size_t begin = bytes.find("IDAT") - 4, end = bytes.find("IEND") - 4;
  const auto with = [&](const std::string& data) {
    return std::string(bytes).replace(begin, end - begin, encode_png_chunk("IDAT", data));
  };
  EXPECT_THAT(pixels_refused(with("no stream")), HasSubstr("its packed data are damaged"));
  EXPECT_THAT(pixels_refused(with(png_data(bytes).substr(2))), HasSubstr("its packed data are damaged"));
  EXPECT_THAT(pixels_refused(with("")), HasSubstr("damaged PNG image"));
  EXPECT_THAT(pixels_refused(std::string(bytes).insert(8, encode_png_chunk("CgBI", "abcd"))),
              HasSubstr("it does not begin with its head"));
}

TEST_F(PngFile, OtherFormatsAreNamed) {
  using namespace std::string_literals;
  EXPECT_THAT(pixels_refused("GIF89a"), HasSubstr("in the format GIF"));
  EXPECT_THAT(pixels_refused("II*\0"s), HasSubstr("in the format TIFF"));
  EXPECT_THAT(pixels_refused("\0\0\0 ftypavif"s), HasSubstr("in the format AVIF"));
  EXPECT_THAT(pixels_refused("{}"), HasSubstr("got no image, expected " + a_readable("image")));
  EXPECT_THAT(pixels_refused(""), HasSubstr("got an empty file, expected " + a_readable("image")));
}

// Each row begins with its filter, 0.
TEST_F(PngFile, EveryKindOfPixelBecomesThreeBytesOnWhite) {
  using namespace std::string_literals;
  const auto read = [](const std::string& bytes) { return parse_image(bytes, "a.png").pixels; };
  EXPECT_THAT(read(png(1, 1, 8, 0, "\0\x28"s)), ElementsAre(40, 40, 40));
  EXPECT_THAT(read(png(2, 1, 1, 0, "\0\x40"s)), ElementsAre(0, 0, 0, 255, 255, 255));
  EXPECT_THAT(read(png(1, 1, 16, 2, "\0\x0A\xFF\x14\x00\x1E\x80"s)), ElementsAre(10, 20, 30));
  EXPECT_THAT(read(png(2, 1, 8, 4, "\0\x64\x80\x07\0"s)), ElementsAre(177, 177, 177, 255, 255, 255));
  EXPECT_THAT(read(png(1, 1, 8, 6, "\0\x0A\x14\x1E\x33"s)), ElementsAre(206, 208, 210));
  const std::string palette = encode_png_chunk("PLTE", "\1\2\3\4\5\6") + encode_png_chunk("tRNS", "\xFF\0"s);
  EXPECT_THAT(read(png(2, 1, 8, 3, "\0\0\1"s, palette)), ElementsAre(1, 2, 3, 255, 255, 255));
  EXPECT_THAT(read(png(2, 1, 8, 0, "\0\7\x08"s, encode_png_chunk("tRNS", "\0\7"s))),
              ElementsAre(255, 255, 255, 8, 8, 8));
  // The passes of an interlaced file of 2 x 2 pixels: the first, its neighbour, the row below.
  EXPECT_THAT(read(png(2, 2, 8, 0, "\0\1\0\2\0\3\4"s, "", 1)),
              ElementsAre(1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4));
}

// Fills the stack below with a value that a decoder would find where it wrote nothing.
[[gnu::noinline]] void soil_stack() {
  volatile unsigned char soil[1 << 16];
  for (volatile unsigned char& byte : soil) byte = 0xA5;
}

TEST_F(PngFile, ColoursThatAPaletteLacksAreBlack) {
  using namespace std::string_literals;
  const auto read = [](char pixel, const std::string& chunks) {
    soil_stack();
    return parse_clear_image(png(2, 1, 8, 3, "\0\0"s + pixel, chunks), "a.png").pixels;
  };
  const std::string palette = encode_png_chunk("PLTE", "\1\2\3\4\5\6");
  for (const char pixel : {'\2', '\x80', '\xFF'})
    EXPECT_THAT(read(pixel, palette), ElementsAre(1, 2, 3, 255, 0, 0, 0, 255));
  EXPECT_THAT(read('\2', palette + encode_png_chunk("tRNS", "\x33\0"s)),
              ElementsAre(1, 2, 3, 0x33, 0, 0, 0, 255));
  EXPECT_THAT(pixels_refused(png(1, 1, 8, 3, "\0\0"s)), HasSubstr("no PLTE"));
  EXPECT_THAT(pixels_refused(png(1, 1, 8, 3, "\0\0"s, encode_png_chunk("PLTE", "\1\2\3\4"))),
              HasSubstr("invalid PLTE"));
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
