#include "image/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/inflate.h"
#include "image/helvetica.h"
#include "image/lettering.h"
#include "lamplighter/error.h"
#include "tests/base/pages.h"
#include "tests/image/pdf.h"
#include "tests/image/pixels.h"

namespace lamplighter {
namespace {

using test::count, test::kRed, test::pixel;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Colour kInk{0, 0, 0};

Figure sample(const std::string& words = "words") {
  Figure figure{40, 30, {}};
  figure.parts.push_back(Figure::Area{1, 2, 10, 5, kRed});
  figure.parts.push_back(Figure::Line{0, 20, 39, 20, 1, kInk});
  figure.parts.push_back(Figure::Text{words, 20, 3, 9, kInk, Anchor::middle});
  figure.parts.push_back(Figure::Photo{30, 10, make_canvas(4, 2, {1, 2, 3})});
  return figure;
}

TEST(Figure, BecomesPixels) {
  const Image image = to_pixels(sample(""));
  EXPECT_EQ(image.width, 40);
  EXPECT_EQ(image.height, 30);
  EXPECT_EQ(pixel(image, 1, 2), kRed);
  EXPECT_EQ(pixel(image, 10, 6), kRed);
  EXPECT_EQ(pixel(image, 11, 6), (Colour{255, 255, 255}));
  EXPECT_EQ(pixel(image, 38, 20), kInk);
  EXPECT_EQ(pixel(image, 33, 11), (Colour{1, 2, 3}));
}

TEST(Figure, TextsStandAtTheirAnchors) {
  Image expected = make_canvas(80, 20, {255, 255, 255});
  const int width = text_width("ab");
  write_text(expected, "ab", 40, 2, kInk);
  for (const auto& [anchor, x] :
       {std::pair{Anchor::start, 40.0}, {Anchor::middle, 40 + width / 2.0}, {Anchor::end, 40.0 + width}}) {
    const Figure figure{80, 20, {Figure::Text{"ab", x, 2, kLetterHeight, kInk, anchor}}};
    EXPECT_EQ(to_pixels(figure).pixels, expected.pixels);
  }
}

TEST(Figure, LettersAreWholeAlsoAlone) {
  const Colour paper{255, 255, 255};
  for (char letter = '!'; letter <= '~'; ++letter) {
    Image alone = make_canvas(40, 20, paper), beside = alone;
    write_text(alone, std::string(1, letter), 0, 2, kInk);
    write_text(beside, std::string(1, letter) + "    ", 0, 2, kInk);
    EXPECT_TRUE(alone.pixels == beside.pixels) << letter;
  }
}

TEST(Figure, SvgHoldsTextsAsText) {
  const std::string svg = to_svg(sample("a <b> & \"c\" \xce\xbb \x01"));
  EXPECT_THAT(svg, HasSubstr("a &lt;b&gt; &amp; &quot;c&quot; \xce\xbb \xef\xbf\xbd</text>"));
  EXPECT_THAT(svg, HasSubstr("text-anchor=\"middle\""));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"1\" y=\"2\" width=\"10\" height=\"5\" fill=\"rgb(255,0,0)\"/>"));
  EXPECT_THAT(svg, HasSubstr("sans-serif"));
  EXPECT_EQ(count(svg, "xlink:href=\"data:image/png;base64,"), 1U);
  EXPECT_EQ(count(svg, "<text"), 1U);
  EXPECT_EQ(svg, to_svg(sample("a <b> & \"c\" \xce\xbb \x01")));
}

TEST(Figure, PdfListsWhereItsObjectsBegin) {
  const std::string pdf = to_pdf(sample());
  const std::vector<std::size_t> offsets = test::pdf_offsets(pdf);
  ASSERT_EQ(offsets.size(), 6U);
  for (std::size_t i = 0; i < offsets.size(); ++i)
    EXPECT_EQ(pdf.compare(offsets[i], 6, std::to_string(i + 1) + " 0 ob"), 0) << i;
  EXPECT_THAT(pdf, HasSubstr("/MediaBox [0 0 30 22.5 ]"));
  EXPECT_THAT(pdf, HasSubstr("/BaseFont /Helvetica /Encoding /WinAnsiEncoding"));
  EXPECT_THAT(pdf, Not(HasSubstr("Date")));
  EXPECT_EQ(pdf, to_pdf(sample()));
}

TEST(Figure, PdfHoldsTextsAsText) {
  // Brackets and backslashes are escaped; a-umlaut has a code, lambda has none.
  const std::string content = test::pdf_content(to_pdf(sample("(\\) \xc3\xa4 \xce\xbb")));
  EXPECT_THAT(content, HasSubstr("(\\(\\\\\\) \xe4 ?) Tj"));
  EXPECT_THAT(content, HasSubstr("1 0 0 rg 1 23 10 5 re f"));
  EXPECT_THAT(content, HasSubstr("q 4 0 0 2 30 18 cm /I1 Do Q"));
}

TEST(Figure, PdfImagesUnpackToPixelsBehindTheFiltersOfRows) {
  const std::string pdf = to_pdf(sample());
  EXPECT_THAT(pdf, HasSubstr("/Predictor 15 /Colors 3 /BitsPerComponent 8 /Columns 4"));
  EXPECT_EQ(test::pdf_stream(pdf, "/Subtype /Image").size(), 2U * (1 + 4 * 3));
}

TEST(Figure, MovesOntoAnother) {
  Figure figure{100, 100, {}};
  place(sample(), figure, 5, 7);
  EXPECT_EQ(std::get<Figure::Area>(figure.parts[0]).left, 6);
  EXPECT_EQ(std::get<Figure::Line>(figure.parts[1]).to_y, 27);
  EXPECT_EQ(std::get<Figure::Text>(figure.parts[2]).top, 10);
  EXPECT_EQ(std::get<Figure::Photo>(figure.parts[3]).left, 35);
}

TEST(Figure, EndingsOfNamesChooseTheFormat) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "figures";
  std::filesystem::create_directories(folder);
  const auto written = [&](const std::string& name) {
    const std::string path = (folder / name).string();
    write_figure(path, sample());
    return read_file(path);
  };
  EXPECT_EQ(written("a.svg"), to_svg(sample()));
  EXPECT_EQ(written("a.SVG"), to_svg(sample()));
  EXPECT_EQ(written("a.Pdf"), to_pdf(sample()));
  EXPECT_EQ(written("a.png"), encode_png(to_pixels(sample())));
  EXPECT_EQ(written("a.other"), encode_png(to_pixels(sample())));
  EXPECT_EQ(typeface_of("a.PDF"), Typeface::helvetica);
  EXPECT_EQ(typeface_of("svg"), Typeface::dots);
  EXPECT_THROW(write_figure((folder / "a.svg").string(), sample(), false), Error);
  EXPECT_EQ(refuse_figure_name("a.svg"), "");
  EXPECT_THAT(refuse_figure_name("a.bmp"), HasSubstr(".svg or .pdf"));
  std::filesystem::remove_all(folder);
}

TEST(Typeface, HelveticaHasTheWidthsOfItsMetrics) {
  EXPECT_NEAR(width_of("Av.", Typeface::helvetica, 1000), 667 + 500 + 278, 1e-9);
  EXPECT_NEAR(width_of("\xe2\x82\xac\xc3\x84\xe2\x80\x94", Typeface::helvetica, 1000), 556 + 667 + 1000,
              1e-9);
  EXPECT_EQ(encode_winansi("\xe2\x82\xac\xc3\xbf\xe6\xbc\xa2\x01"), "\x80\xff??");
}

TEST(Typeface, WrappedLinesFitAndLoseNothing) {
  const std::string text = "lantern++:k=10:lambda=3/2/2:tree=lantern-58 on two images, and a_very_long_word";
  for (const Typeface typeface : {Typeface::dots, Typeface::helvetica}) {
    for (const double width : {40.0, 90.0, 200.0, 1000.0}) {
      std::string all;
      for (const std::string& line : wrap_text(text, typeface, 9, width)) {
        EXPECT_LE(width_of(line, typeface, 9), width) << line;
        for (const char letter : line) all += letter == ' ' ? "" : std::string(1, letter);
      }
      std::string whole;
      for (const char letter : text) whole += letter == ' ' ? "" : std::string(1, letter);
      EXPECT_EQ(all, whole);
    }
  }
  EXPECT_THAT(wrap_text("one two\nthree", Typeface::dots, 9, 1000),
              ::testing::ElementsAre("one two", "three"));
  EXPECT_THAT(wrap_text("one two", Typeface::dots, 9, text_width("one t")),
              ::testing::ElementsAre("one", "two"));
  EXPECT_THAT(wrap_text("ab:cd", Typeface::dots, 9, text_width("ab:c")), ::testing::ElementsAre("ab:", "cd"));
  EXPECT_THAT(wrap_text("\xc3\xa4\xc3\xb6", Typeface::helvetica, 9, 1),
              ::testing::ElementsAre("\xc3\xa4", "\xc3\xb6"));
  EXPECT_THAT(wrap_text("", Typeface::dots, 9, 10), ::testing::ElementsAre(""));
}

}  // namespace
}  // namespace lamplighter
