#include "bench/figures/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/files.h"
#include "bench/figures/bar_chart.h"
#include "lamplighter/error.h"
#include "tests/base/pages.h"
#include "tests/image/pdf.h"

namespace lamplighter {
namespace {

using test::count;
using ::testing::HasSubstr;
using ::testing::Not;

Json interval(double mean, double low, double high) {
  return {{"mean", mean}, {"low", low}, {"high", high}, {"count", 5}};
}

Json row(const std::string& method, double ratio, int batch = 1) {
  return {{"method", method},
          {"batch_size", batch},
          {"speedup", interval(ratio, 0.9 * ratio, 1.1 * ratio)},
          {"step_compression", interval(2 * ratio, 2 * ratio, 2 * ratio)},
          {"cycle_ms", 4.5},
          {"stage_ms", {{"draft", 1}, {"score", 2.5}, {"verify", 0.5}, {"commit", 0.25}}}};
}

PageImage sample_image(const std::string& caption, const std::string& method) {
  return {caption, method, 7, 2.5, {make_canvas(64, 64, {1, 2, 3}), 1, 2, {1, 2}}};
}

std::map<std::string, Figure> figures_of(const Json& rows, const std::vector<PageImage>& images = {},
                                         const std::string& footer = "") {
  std::map<std::string, Figure> figures;
  for (BenchFigure& one : bench_figures({{"methods", rows}}, images, "demo on a CPU", footer))
    figures.emplace(one.name, std::move(one.figure));
  return figures;
}

const Figure::Text* find_text(const Figure& figure, const std::string& words) {
  for (const Figure::Part& part : figure.parts) {
    const auto* const text = std::get_if<Figure::Text>(&part);
    if (text != nullptr && text->words == words) return text;
  }
  return nullptr;
}

TEST(BenchFigures, ShowNumbersAndIntervalsOfTheReport) {
  const auto figures = figures_of({row("ar", 1), row("eagle", 2)}, {sample_image("a", "ar")});
  ASSERT_EQ(figures.size(), 4U);
  for (const char* words : {"eagle", "2.00 [1.80, 2.20]", "ar = 1.0", "demo on a CPU"})
    EXPECT_NE(find_text(figures.at("speedup"), words), nullptr) << words;
  EXPECT_NE(find_text(figures.at("compression"), "4.00"), nullptr);  // an interval without a length
  for (const char* words : {"draft", "rest of the cycle", "4.50 ms"})
    EXPECT_NE(find_text(figures.at("stages"), words), nullptr) << words;
  for (const char* words : {"ar, S = 2.50", "a, seed 7"})
    EXPECT_NE(find_text(figures.at("acceptance-map"), words), nullptr) << words;
}

TEST(BenchFigures, NeedNumbers) {
  const Json unknown{{"method", "sjd"}, {"cycle_ms", 2.0}, {"stage_ms", {{"draft", 0}, {"score", 0}}}};
  const auto figures = figures_of(Json::array({unknown}));
  ASSERT_EQ(figures.size(), 1U);  // cycles of a CUDA graph have no stages
  EXPECT_EQ(find_text(figures.at("stages"), "score"), nullptr);
  EXPECT_NE(find_text(figures.at("stages"), "2.00 ms"), nullptr);
  EXPECT_TRUE(figures_of(Json::array()).empty());
}

TEST(BenchFigures, NameBatchSizesWhereThereAreSeveral) {
  const auto figures = figures_of({row("ar", 1), row("ar", 1, 4)});
  EXPECT_NE(find_text(figures.at("speedup"), "ar, batch 4"), nullptr);
}

// A column per caption, a row per method.
TEST(BenchFigures, ArrangeImagesWithoutEmptyPlaces) {
  std::vector<PageImage> images;
  for (const char* caption : {"a", "b"})
    for (const char* method : {"ar", "sjd", "eagle"}) images.push_back(sample_image(caption, method));
  const Figure map = figures_of(Json::array({row("ar", 1)}), images).at("acceptance-map");
  EXPECT_EQ(map.width, 2 * (2 * 64 + 4) + 12);
  const Figure::Text *a = find_text(map, "a, seed 7"), *b = find_text(map, "b, seed 7");
  ASSERT_TRUE(a != nullptr && b != nullptr);
  EXPECT_EQ(a->top, b->top);
  EXPECT_LT(a->x, b->x);
}

TEST(BenchFigures, EverythingLiesInside) {
  std::string footer;
  for (int i = 0; i < 60; ++i) footer += "word" + std::to_string(i) + " ";
  const std::string name = "lantern++:k=10:lambda=3/2/2:tree=lantern-58:rule=traversal:relax=0.25";
  for (const auto& [kind, figure] : figures_of({row("ar", 1), row(name, 12.5)}, {}, footer)) {
    std::size_t lines = 0;
    for (const Figure::Part& part : figure.parts) {
      const auto* const text = std::get_if<Figure::Text>(&part);
      if (text == nullptr) continue;
      const double width = width_of(text->words, Typeface::helvetica, text->size);
      const double left = text->x - (text->anchor == Anchor::end      ? width
                                     : text->anchor == Anchor::middle ? width / 2
                                                                      : 0);
      EXPECT_GE(left, 0) << kind << " " << text->words;
      EXPECT_LE(left + width, figure.width) << kind << " " << text->words;
      EXPECT_LE(text->top + text->size, figure.height) << kind << " " << text->words;
      lines += text->words.rfind("word", 0) == 0 ? 1U : 0U;
    }
    EXPECT_GT(lines, 1U) << kind;  // of the footer
  }
}

TEST(BenchFigures, AreWrittenAsSvgAndPdf) {
  const std::string folder = (std::filesystem::path(::testing::TempDir()) / "bench_figures" / "new").string();
  const Json report{{"methods", {row("ar", 1), row("<b>", 2)}}};
  const auto figures = bench_figures(report, {}, "", "");
  write_figures(folder, figures, false);
  const std::string svg = read_file(join_path(folder, "speedup.svg"));
  EXPECT_THAT(svg, HasSubstr(">&lt;b&gt;</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(test::pdf_content(read_file(join_path(folder, "speedup.pdf"))), HasSubstr("(<b>) Tj"));
  EXPECT_THROW(write_figures(folder, figures, false), Error);
  write_figures(folder, figures, true);
  EXPECT_EQ(read_file(join_path(folder, "speedup.svg")), svg);
  const std::vector<std::string> paths = figure_paths(folder);
  EXPECT_EQ(paths.size(), 8U);
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_THAT(paths, ::testing::Contains(entry.path().string()));
  std::filesystem::remove_all(std::filesystem::path(folder).parent_path());
}

TEST(BarChart, BarsAreAsLongAsTheirNumbers) {
  BarChart chart;
  chart.bars = {{"a", {1}, "1", {}, {}}, {"b", {2, 1}, "3", 2.5, 3.5}};
  std::vector<double> lengths;
  for (const Figure::Part& part : to_figure(chart).parts) {
    const auto* const area = std::get_if<Figure::Area>(&part);
    if (area != nullptr && area->colour != Colour{255, 255, 255}) lengths.push_back(area->width);
  }
  ASSERT_EQ(lengths.size(), 3U);
  EXPECT_NEAR(lengths[1], 2 * lengths[0], 1e-9);
  EXPECT_NEAR(lengths[2], lengths[0], 1e-9);
}

TEST(BarChart, TicksAreRoundNumbers) {
  EXPECT_DOUBLE_EQ(tick_step(2.48, 8), 0.5);
  EXPECT_DOUBLE_EQ(tick_step(8, 8), 1);
  EXPECT_DOUBLE_EQ(tick_step(0.07, 8), 0.01);
  EXPECT_DOUBLE_EQ(tick_step(900, 8), 200);
}

}  // namespace
}  // namespace lamplighter
