#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "image/fit.h"
#include "image/pixels.h"
#include "lamplighter/error.h"
#include "pipeline/region.h"
#include "serve/http_error.h"
#include "serve/mask.h"
#include "serve/multipart.h"
#include "serve/parse.h"

namespace lamplighter {
namespace {

using ::testing::HasSubstr;

// Opaque above a line, clear below it.
ClearImage clear_below(int line, int width = 8, int height = 12) {
  ClearImage mask{width, height,
                  std::vector<std::uint8_t>(static_cast<std::size_t>(width * height) * 4, 255)};
  for (std::size_t pixel = static_cast<std::size_t>(line * width); 4 * pixel < mask.pixels.size(); ++pixel)
    mask.pixels[4 * pixel + 3] = 0;
  return mask;
}

const FittedSides kSame{8, 12, 8, 12, 4, Fit::crop};

// How many rows a mask keeps.
std::int64_t rows_kept_by(const ClearImage& mask, MaskForm form, const FittedSides& sides) {
  return kept_by(mask, form, sides).rows.value();
}

std::string refusal_of_mask(const ClearImage& mask, const FittedSides& sides = kSame) {
  try {
    kept_by(mask, MaskForm::clear, sides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::input);
    return error.what();
  }
  return "";
}

TEST(Mask, KeepsWholeRowsAboveAllMarkedPixels) {
  for (int line = 4; line < 12; ++line)
    EXPECT_EQ(rows_kept_by(clear_below(line), MaskForm::clear, kSame), line / 4) << line;
  EXPECT_THAT(refusal_of_mask(clear_below(3)), HasSubstr("keeps no whole row of tokens"));
  EXPECT_THAT(refusal_of_mask(clear_below(12)), HasSubstr("marks nothing"));
  EXPECT_THAT(refusal_of_mask(clear_below(4, 4, 12)), HasSubstr("got 4x12 pixels, expected 8x12"));
}

TEST(Mask, BordersMayBeRaggedWithinARowOfTokens) {
  ClearImage mask = clear_below(8);
  const auto alpha = [&](int x, int y) -> std::uint8_t& {
    return mask.pixels[static_cast<std::size_t>(4 * (8 * y + x) + 3)];
  };
  alpha(3, 11) = 255;  // rows 8 to 11: as tall as a row of tokens
  EXPECT_EQ(rows_kept_by(mask, MaskForm::clear, kSame), 2);
  alpha(5, 7) = 0;
  EXPECT_THAT(refusal_of_mask(mask), HasSubstr("expected a lower part of the image, or a rectangle"))
      << "rows 7 to 11, and the left token of row 1 stays";
  alpha(3, 11) = 0;
  EXPECT_EQ(rows_kept_by(mask, MaskForm::clear, kSame), 1) << "the marked pixel in row 7 is not kept";
  alpha(5, 7) = 128;  // half opaque
  EXPECT_EQ(rows_kept_by(mask, MaskForm::clear, kSame), 2);
}

// Clear in a rectangle.
ClearImage clear_in(const Region& region, int width = 8, int height = 12) {
  ClearImage mask = clear_below(height, width, height);
  for (int y = region.y; y < region.y + region.height; ++y) {
    for (int x = region.x; x < region.x + region.width; ++x)
      mask.pixels[static_cast<std::size_t>(4 * (width * y + x) + 3)] = 0;
  }
  return mask;
}

std::string region_of(const Region& marked, const FittedSides& sides = kSame) {
  return region_text(
      kept_by(clear_in(marked, sides.width, sides.height), MaskForm::clear, sides).region.value());
}

TEST(Mask, RectanglesAreRegionsOfWholeTokens) {
  EXPECT_EQ(region_of({0, 0, 1, 1}), "0,0,4,4");
  EXPECT_EQ(region_of({4, 4, 4, 4}), "4,4,4,4");
  EXPECT_EQ(region_of({5, 3, 1, 2}), "4,0,4,8");
  EXPECT_EQ(region_of({0, 2, 8, 4}), "0,0,8,8") << "the upper part";
  EXPECT_EQ(region_of({7, 0, 1, 12}), "4,0,4,12") << "a column";
  EXPECT_EQ(region_of({1, 9, 2, 2}), "0,8,4,4") << "a part of the last row";
  EXPECT_EQ(rows_kept_by(clear_in({3, 9, 2, 1}), MaskForm::clear, kSame), 2) << "touches the whole last row";
}

TEST(Mask, RectanglesLieWhereTheFittedImageHasThem) {
  // 16 x 24 pixels: halved; cropped to their middle from 16 x 48.
  EXPECT_EQ(region_of({8, 8, 8, 8}, {16, 24, 8, 12, 4, Fit::stretch}), "4,4,4,4");
  EXPECT_EQ(region_of({8, 0, 2, 13}, {16, 48, 8, 12, 4, Fit::crop}), "4,0,4,4");
  // 8 x 24 pixels become 4 x 12 with 2 columns at each side, which belong to the pixels at the edge.
  const FittedSides padded{8, 24, 8, 12, 4, Fit::pad};
  EXPECT_EQ(region_of({0, 8, 2, 8}, padded), "0,4,4,4");
  EXPECT_EQ(region_of({0, 8, 8, 8}, padded), "0,4,8,4");
  EXPECT_EQ(rows_kept_by(clear_below(16, 8, 24), MaskForm::clear, padded), 2);
}

TEST(Mask, OtherShapesAreOfferedTheRectangleAroundThem) {
  ClearImage mask = clear_in({0, 0, 1, 8});
  mask.pixels[4 * (8 * 5 + 6) + 3] = 0;
  EXPECT_THAT(refusal_of_mask(mask),
              HasSubstr("or a rectangle as region 0,0,8,8 around them; a token has 4x4"));
  mask.pixels[4 * (8 * 11 + 6) + 3] = 0;
  EXPECT_THAT(refusal_of_mask(mask), HasSubstr("or a rectangle of some of its tokens"));
}

TEST(Mask, LinesLieWhereTheFittedImageHasThem) {
  // 8 x 24 pixels: cropped to 8 x 12 from row 6 on, stretched by half, padded by half with columns beside it.
  const FittedSides crop{8, 24, 8, 12, 4, Fit::crop};
  EXPECT_EQ(rows_kept_by(clear_below(14, 8, 24), MaskForm::clear, crop), 2);
  EXPECT_THAT(refusal_of_mask(clear_below(9, 8, 24), crop), HasSubstr("keeps no whole row"));
  EXPECT_THAT(refusal_of_mask(clear_below(18, 8, 24), crop), HasSubstr("marks nothing"));
  for (const Fit fit : {Fit::stretch, Fit::pad}) {
    const FittedSides half{8, 24, 8, 12, 4, fit};
    EXPECT_EQ(rows_kept_by(clear_below(16, 8, 24), MaskForm::clear, half), 2);
    EXPECT_EQ(rows_kept_by(clear_below(15, 8, 24), MaskForm::clear, half), 1);
  }
  // 16 x 12 pixels become 8 x 6, with 3 white rows above.
  EXPECT_DOUBLE_EQ(fitted_edge(16, 12, 8, 12, Fit::pad, 0), 3);
  EXPECT_DOUBLE_EQ(fitted_edge(16, 12, 8, 12, Fit::pad, 12), 9);
}

TEST(Mask, WhiteAndBlackMarkWhatTheySay) {
  ClearImage grey = clear_below(12);
  for (std::size_t pixel = 0; pixel < 96; ++pixel) {
    for (std::size_t channel = 0; channel < 3; ++channel)
      grey.pixels[4 * pixel + channel] = pixel < 64 ? 127 : 128;
  }
  EXPECT_EQ(rows_kept_by(grey, MaskForm::white, kSame), 2);
  EXPECT_EQ(region_text(kept_by(grey, MaskForm::black, kSame).region.value()), "0,0,8,8");
  // Where pixels are clear, opacity counts and colour does not.
  EXPECT_EQ(rows_kept_by(clear_below(8), MaskForm::black, kSame), 2);
  EXPECT_EQ(region_text(kept_by(clear_below(8), MaskForm::white, kSame).region.value()), "0,0,8,8");
}

TEST(Form, HasFieldsAndFiles) {
  const std::string body =
      "preamble\r\n--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na \"boat\"\r\n--b \r\n"
      "content-type: image/png\r\nCONTENT-DISPOSITION: form-data; filename=\"a;\\\"b.png\"; "
      "name=image\r\n\r\n"
      "\r\n-- --b\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n--b--\r\nend";
  const std::vector<FormField> fields = parse_form("multipart/form-data; charset=x; Boundary=\"b\"", body);
  ASSERT_EQ(fields.size(), 3U);
  EXPECT_EQ(fields[0].name, "prompt");
  EXPECT_EQ(fields[0].content, "a \"boat\"");
  EXPECT_EQ(fields[1].name, "image");
  EXPECT_EQ(fields[1].content, "\r\n-- --b\r\n");
  EXPECT_EQ(fields[2].name, "empty");
  EXPECT_EQ(fields[2].content, "");
}

std::string refusal_of_form(const std::string& type, const std::string& body) {
  try {
    parse_form(type, body);
  } catch (const HttpError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.what();
  }
  return "";
}

// OpenAI's client sends a list as items.
TEST(Form, ListsComeAsItems) {
  const auto read = [](const std::vector<std::pair<std::string, std::string>>& fields) {
    std::string body;
    for (const auto& [name, content] : fields)
      body += "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + content + "\r\n";
    const std::string start = "--b\r\nContent-Disposition: form-data; name=prompt\r\n\r\na\r\n";
    return *parse_edits("multipart/form-data; boundary=b", start + body + "--b--", {}).edit;
  };
  const EditWanted edit = read(
      {{"image[]", "x"}, {"region[]", "16"}, {"region[]", "0"}, {"region[]", "32.0"}, {"region[]", "16"}});
  EXPECT_EQ(edit.image, "x");
  std::string paths = "[[0]";
  for (int path = 0; path < 20; ++path) paths += ", [0, " + std::to_string(path) + "]";
  EXPECT_NO_THROW(read(
      {{"image", "x"}, {"keep_rows", "1"}, {"method", "eagle"}, {"tree", "t"}, {"tree_paths", paths + "]"}}));
  EXPECT_EQ(region_text(edit.part.region.value()), "16,0,32,16");
  EXPECT_EQ(read({{"image", "x"}, {"mask[]", "y"}}).mask, "y");
  EXPECT_THROW(read({{"image", "x"}, {"image[]", "y"}}), HttpError);
  EXPECT_THROW(read({{"image", "x"}, {"region", "0,0,16,16"}, {"region[]", "0"}}), HttpError);
  EXPECT_THROW(read({{"image", "x"}, {"region[]", "0"}, {"region", "0,0,16,16"}}), HttpError);
  EXPECT_THROW(read({{"image", "x"}, {"keep_rows[]", "1"}}), HttpError);
  EXPECT_THROW(read({{"image", "x"}, {"keep_rows", "1"}, {"regin[]", "1"}}), HttpError);
}

TEST(Form, DamagedOnesAreRefused) {
  const std::string type = "multipart/form-data; boundary=b", head = "Content-Disposition: form-data; ";
  EXPECT_THAT(refusal_of_form("multipart/form-data", ""), HasSubstr("expected a boundary"));
  EXPECT_THAT(refusal_of_form(type, ""), HasSubstr("got no form"));
  EXPECT_THAT(refusal_of_form(type, "--b"), HasSubstr("damaged behind a boundary"));
  EXPECT_THAT(refusal_of_form(type, "--b\r\n"), HasSubstr("cut off"));
  EXPECT_THAT(refusal_of_form(type, "--b\r\n" + head + "name=a\r\n\r\nx"), HasSubstr("cut off"));
  EXPECT_THAT(refusal_of_form(type, "--b\r\n" + head + "\r\n\r\nx\r\n--b--"), HasSubstr("has no name"));
  EXPECT_THAT(refusal_of_form(type, "--b\r\n" + head + "name=a\r\n--b--"), HasSubstr("no empty line"));
  EXPECT_EQ(refusal_of_form(type, "--b--"), "");
}

}  // namespace
}  // namespace lamplighter
