#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "image/fit.h"
#include "image/png_chunks.h"
#include "lamplighter/error.h"
#include "serve/http_error.h"
#include "serve/mask.h"
#include "serve/multipart.h"

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

std::string refusal_of_mask(const ClearImage& mask, const FittedSides& sides = kSame) {
  try {
    rows_kept_by(mask, MaskForm::clear, sides);
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
  alpha(5, 7) = 0;  // rows 7 to 11
  EXPECT_THAT(refusal_of_mask(mask), HasSubstr("only a lower part"));
  alpha(3, 11) = 0;
  EXPECT_EQ(rows_kept_by(mask, MaskForm::clear, kSame), 1) << "the marked pixel in row 7 is not kept";
  alpha(5, 7) = 128;  // half opaque
  EXPECT_EQ(rows_kept_by(mask, MaskForm::clear, kSame), 2);
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
  EXPECT_THROW(rows_kept_by(grey, MaskForm::black, kSame), Error);
  // Where pixels are clear, opacity counts and colour does not.
  EXPECT_EQ(rows_kept_by(clear_below(8), MaskForm::black, kSame), 2);
  EXPECT_THROW(rows_kept_by(clear_below(8), MaskForm::white, kSame), Error);
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
