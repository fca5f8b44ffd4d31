#include "lamplighter/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Paths of two images with seeds 7 and 8.
std::vector<std::string> two(const std::string& pattern) {
  return expand_outputs({{pattern, 0, 7}, {pattern, 1, 8}});
}

template <class F>
std::string refusal(F f, ExitCode code = ExitCode::usage) {
  return error_of(code, f);
}

TEST(Outputs, FillPatterns) {
  EXPECT_THAT(two("x-%04d.png"), ElementsAre("x-0000.png", "x-0001.png"));
  EXPECT_THAT(two("%3d.png"), ElementsAre("  0.png", "  1.png"));
  EXPECT_THAT(two("%d%%.png"), ElementsAre("0%.png", "1%.png"));
  EXPECT_THAT(two("{index}-{seed}.png"), ElementsAre("0-7.png", "1-8.png"));
  EXPECT_THAT(two("new/"), ElementsAre("new/0000.png", "new/0001.png"));
}

TEST(Outputs, NumberAPatternThatNamesOneFile) {
  EXPECT_THAT(two("plain.png"), ElementsAre("plain-0000.png", "plain-0001.png"));
  EXPECT_THAT(two("100%.png"), ElementsAre("100%-0000.png", "100%-0001.png"));
  EXPECT_THAT(two("images"), ElementsAre("images/0000.png", "images/0001.png"));
  EXPECT_THAT(expand_outputs({{"images", 0, 7}}), ElementsAre("images"));
  EXPECT_THAT(expand_outputs({{"plain.png", 0, 7}}), ElementsAre("plain.png"));
  EXPECT_THAT(expand_outputs({{"{prompt}.png", 3, 7, "A"}, {"{prompt}.png", 4, 7, "B"}}),
              ElementsAre("a.png", "b.png"));
  EXPECT_THAT(expand_outputs({{"{seed}.png", 0, 7}, {"{seed}.png", 1, 8}, {"{seed}.png", 2, 7}}),
              ElementsAre("7-0000.png", "8-0001.png", "7-0002.png"));
  EXPECT_TRUE(is_numbered("%d.png") && is_numbered("a{index}.png") && is_numbered("new/"));
  EXPECT_FALSE(is_numbered("{seed}.png") || is_numbered("-") || is_numbered(""));
}

TEST(Outputs, RefuseWhatNamesNoFile) {
  EXPECT_THAT(refusal([] { two(""); }), HasSubstr("output: got ''"));
  EXPECT_THAT(refusal([] { two("{name}.png"); }), HasSubstr("{index}, {prompt} or {seed}"));
  EXPECT_THAT(refusal([] { two("%99d.png"); }), HasSubstr("N up to 20"));
  EXPECT_THAT(refusal([] { two("%d.GIF"); }), HasSubstr("ends in .png"));
  EXPECT_THAT(refusal([] {
                expand_outputs({{"a.png", 0, 7}, {"./a.png", 1, 8}});
              }),
              HasSubstr("two would be ./a.png"));
  EXPECT_THAT(refusal([] { check_image_name("sheet", "a.tif"); }), HasSubstr("sheet: got 'a.tif'"));
  EXPECT_THAT(refusal([] { check_distinct({"a.png", "b.png", "./b.png"}); }), HasSubstr("./b.png twice"));
}

TEST(Outputs, MakeFoldersAndKeepFiles) {
  const std::string folder =
      (std::filesystem::path(testing::TempDir()) / ("outputs" + std::to_string(::getpid()))).string();
  const std::vector<OutputRequest> requests{{folder + "/new/", 0, 7}};
  const std::vector<std::string> paths = expand_outputs(requests);
  prepare_outputs(requests, paths, false);
  std::ofstream(paths[0]) << "kept";
  EXPECT_THAT(refusal([&] { prepare_outputs(requests, paths, false); }, ExitCode::output),
              HasSubstr("it exists"));
  prepare_outputs(requests, paths, true);
  std::filesystem::remove_all(folder);
}

TEST(Outputs, MakeAFolderOfANameForSeveral) {
  const std::string folder =
      (std::filesystem::path(testing::TempDir()) / ("outputs_n" + std::to_string(::getpid()))).string();
  const std::vector<OutputRequest> requests{{folder, 0, 7}, {folder, 1, 8}};
  const std::vector<std::string> paths = expand_outputs(requests);
  prepare_outputs(requests, paths, false);
  EXPECT_TRUE(std::filesystem::is_directory(folder));
  EXPECT_EQ(paths[1], folder + "/0001.png");
  std::filesystem::remove_all(folder);
}

// Also one that looks like a pattern.
TEST(Outputs, TakeTheNameOfAFolderAsItIs) {
  const std::string folder =
      (std::filesystem::path(testing::TempDir()) / ("outputs_p" + std::to_string(::getpid()))).string();
  for (const std::string name : {"run{1}", "p%d", "{name}"}) {
    const std::string place = folder + "/" + name;
    const std::vector<OutputRequest> requests{{place + "/", 0, 7}};
    EXPECT_THAT(expand_outputs(requests), ElementsAre(place + "/0000.png"));
    prepare_outputs(requests, expand_outputs(requests), false);
    EXPECT_THAT(expand_outputs({{place, 1, 7}}), ElementsAre(place + "/0001.png"));  // it exists by now
  }
  std::filesystem::remove_all(folder);
}

TEST(Outputs, RemoveWhatKilledRunsLeft) {
  const std::string folder =
      (std::filesystem::path(testing::TempDir()) / ("outputs_l" + std::to_string(::getpid()))).string();
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/.lamplighter-part-1-0") << "half";
  std::ofstream(folder + "/0000.png") << "whole";
  prepare_outputs({{folder + "/1.png", 0, 7}}, {folder + "/1.png"}, false);
  EXPECT_FALSE(std::filesystem::exists(folder + "/.lamplighter-part-1-0"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/0000.png"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lamplighter
