#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "bench/page/page.h"
#include "image/canvas.h"
#include "lamplighter/error.h"
#include "tests/base/pages.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using test::count;
using test::data_of;
using ::testing::HasSubstr;
using ::testing::Not;

BenchPage page_of(const std::string& text) {
  BenchPage page;
  page.title = text;
  page.heading = {text};
  page.tables = {{{"method", text}, {{"ar", "1.00"}, {text, "2.00"}}}};
  page.remarks = {text};
  page.report = {{"model", text},
                 {"environment", {{"cpu", text}, {"mhz", nullptr}, {"gpu", ""}, {"load_before", 0.125}}},
                 {"methods", {{{"method", text}}}}};
  page.scores = {{text, {{text, 1.5}}}};
  page.growth = {{"curves", {{"tree", {{{"tree", text}}}}}}};
  page.images = {{text, text, 7, 2.5, {make_canvas(4, 4, {1, 2, 3}), 1, 2, {1, 2}}}};
  return page;
}

TEST(BenchPage, HoldsTablesFactsAndImagesWithoutAScript) {
  const std::string html = bench_page(page_of("plain"));
  EXPECT_THAT(html, HasSubstr("<td>plain</td><td>2.00</td>"));
  EXPECT_THAT(html, HasSubstr("<dt>CPU</dt><dd>plain</dd>"));
  EXPECT_THAT(html, HasSubstr("<dd>0.12</dd>"));
  EXPECT_THAT(html, Not(HasSubstr("<dt>MHz</dt>")));
  EXPECT_THAT(html, Not(HasSubstr("<dt>GPU</dt>")));
  EXPECT_EQ(count(html, "src=\"data:image/png;base64,"), 2U);
  EXPECT_THAT(html, HasSubstr("<small>seed 7</small>"));
  EXPECT_THAT(html, HasSubstr("<section id=\"images\">"));
  BenchPage without = page_of("plain");
  without.images.clear();
  EXPECT_THAT(bench_page(without), HasSubstr("<section id=\"images\" hidden>"));
}

TEST(BenchPage, HostileTextsStayTexts) {
  const std::string plain = bench_page(page_of("plain"));
  for (const std::string& text :
       {std::string("</script><script>alert(1)</script>"), std::string("<!--<script>"),
        std::string("\" onload='x' & \\u003c/script>"), std::string("PAGE_DATA PAGE_LIBRARY PAGE_TITLE"),
        std::string("\xf0\x9f\x8f\xae \xe2\x80\xa8 \x01")}) {
    const std::string html = bench_page(page_of(text));
    for (const char* part : {"<", "</script", "<!--", "<td>", "alt=\""})
      EXPECT_EQ(count(html, part), count(plain, part)) << text;
    const Json data = data_of(html);
    EXPECT_EQ(data["report"]["methods"][0]["method"], text);
    EXPECT_EQ(data["scores"][text][text], 1.5);
    EXPECT_EQ(data["growth"]["curves"]["tree"][0]["tree"], text);
  }
}

TEST(BenchPage, EqualRunsGiveEqualBytes) {
  EXPECT_EQ(bench_page(page_of("a")), bench_page(page_of("a")));
}

TEST(BenchPage, ScoresAreNumbersByMethod) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "scores.json").string();
  write_file(path, R"({"ar": {"fid": 20, "clip": 0.31}, "eagle": {}})");
  EXPECT_EQ(read_scores(path)["ar"]["clip"], 0.31);
  for (const char* text :
       {"[]", "{", R"({"ar": 3})", R"({"ar": {"fid": "low"}})", R"({"ar": {"fid": null}})"}) {
    write_file(path, text);
    EXPECT_THAT(error_of(ExitCode::input, [&] { read_scores(path); }), HasSubstr("scores.json"));
  }
}

TEST(BenchPage, GrowthIsPointsOfThreeCurves) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "growth.json").string();
  const Json point{{"method", "ar"}, {"grid", 16}, {"S", 1}, {"ms", 2.5}, {"ms a pass", 0.1}, {"MB", 300}};
  const Json good{
      {"curves", {{"image", Json::array({point})}, {"batch", Json::array()}, {"tree", Json::array()}}}};
  write_file(path, good.dump());
  EXPECT_EQ(read_growth(path)["curves"]["image"][0]["grid"], 16);
  for (const auto& [key, value] : {std::pair<const char*, Json>{"grid", 0},
                                   {"grid", "16"},
                                   {"ms", "2"},
                                   {"method", 3},
                                   {"MB", nullptr}}) {
    Json bad = good;
    bad["curves"]["image"][0][key] = value;
    write_file(path, bad.dump());
    EXPECT_THAT(error_of(ExitCode::input, [&] { read_growth(path); }),
                HasSubstr(std::string("curves.image[0].") + key));
  }
}

}  // namespace
}  // namespace lamplighter
