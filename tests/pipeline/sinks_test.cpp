#include "lamplighter/sinks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/files.h"
#include "base/json.h"
#include "image/acceptance_map.h"
#include "lamplighter/error.h"
#include "pipeline/metadata/metadata.h"
#include "pipeline/output/codes_file.h"
#include "tests/error_of.h"
#include "tree/tree.h"

namespace lamplighter {
namespace {

using ::testing::ElementsAre;

constexpr int kRows = 3, kColumns = 2, kSide = 8;  // tokens, and pixels of one

Image flat(std::uint8_t value) {
  Image image{kColumns * kSide, kRows * kSide, {}};
  image.pixels.assign(static_cast<std::size_t>(image.width) * image.height * 3, value);
  return image;
}

// Two cycles: one token, then the rest.
Result generated(std::uint8_t value, std::uint64_t seed) {
  Result result;
  result.image = flat(value);
  result.codes = {kRows, kColumns, {1, 2, 3, 4, 5, value}};
  result.method.method = "eagle";
  result.method.tree = "chain-4";
  result.seed = seed;
  result.statistics.tokens = 6;
  result.statistics.target_passes = 3;
  result.statistics.order = {0, 1, 2, 3, 4, 5};
  Cycle cycle;
  cycle.first = 1;
  cycle.committed = 1;
  cycle.cycle_ms = 0.5;
  result.statistics.cycles.push_back(cycle);
  cycle.first = 2;
  cycle.committed = 4;
  cycle.accepted = 3;
  cycle.cycle_ms = 2;
  result.statistics.cycles.push_back(cycle);
  return result;
}

class SinksTest : public testing::Test {
 protected:
  SinksTest() : folder_(std::filesystem::path(testing::TempDir()) / ("sinks" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    request_.prompt = "a cat";
  }
  ~SinksTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // Gives two images to the sink.
  void run(Sink& sink) const {
    sink.image(0, request_, first_);
    sink.image(1, request_, second_);
    sink.done();
  }
  Json described(const Result& result) const { return describe_image(origin_, request_, result); }

  std::filesystem::path folder_;
  Origin origin_{"bundle", "0123", "cpu", "bf16", "bf16", "avx512", {}};
  Request request_;
  Result first_ = generated(10, 42), second_ = generated(20, 43);
};

TEST_F(SinksTest, PngCarriesWhatGeneratedTheImage) {
  run(*image_sink(origin_, {path("a.png"), path("b.png")}));
  EXPECT_EQ(read_file(path("a.png")), encode_png(first_.image, image_text(described(first_))));
  EXPECT_EQ(read_file(path("b.png")), encode_png(second_.image, image_text(described(second_))));
  const Recorded recorded = read_recorded(path("b.png"));
  EXPECT_EQ(recorded.request.prompt, "a cat");
  EXPECT_EQ(recorded.request.seed, 43U);
  EXPECT_EQ(recorded.method.tree, "chain-4");
  EXPECT_EQ(recorded.model, "bundle");
}

TEST_F(SinksTest, PngWithoutText) {
  run(*image_sink(origin_, {path("a.png"), path("b.png")}, false));
  EXPECT_EQ(read_file(path("a.png")), encode_png(first_.image));
  EXPECT_THROW(read_recorded(path("a.png")), Error);
}

TEST_F(SinksTest, SheetHoldsAllImages) {
  run(*sheet_sink(path("sheet.png")));
  EXPECT_EQ(read_file(path("sheet.png")), encode_png(contact_sheet({first_.image, second_.image}, 2)));
}

TEST_F(SinksTest, CodesAreReadBack) {
  run(*codes_sink(origin_, path("codes.json")));
  const std::vector<SavedCodes> saved = read_codes(path("codes.json"));
  ASSERT_EQ(saved.size(), 2U);
  EXPECT_EQ(saved[0].codes.rows, kRows);
  EXPECT_EQ(saved[0].codes.columns, kColumns);
  EXPECT_THAT(saved[1].codes.ids, ElementsAre(1, 2, 3, 4, 5, 20));
  EXPECT_EQ(saved[1].parameters, described(second_));
}

TEST_F(SinksTest, TraceHasALinePerCycle) {
  run(*trace_sink(origin_, path("trace.jsonl")));
  std::istringstream lines(read_file(path("trace.jsonl")));
  std::vector<std::vector<int>> found;
  std::vector<Json> settings;
  for (std::string line; std::getline(lines, line);) {
    const Json cycle = Json::parse(line);
    if (cycle.contains("settings")) {
      settings.push_back(cycle);
      continue;
    }
    found.push_back({cycle.at("image"), cycle.at("cycle"), cycle.at("first"), cycle.at("committed"),
                     cycle.at("accepted")});
    EXPECT_EQ(cycle.at("ms").at("cycle"), cycle.at("cycle") == 0 ? 0.5 : 2);
  }
  EXPECT_THAT(found, ElementsAre(ElementsAre(0, 0, 1, 1, 0), ElementsAre(0, 1, 2, 4, 3),
                                 ElementsAre(1, 0, 1, 1, 0), ElementsAre(1, 1, 2, 4, 3)));
  const Json passes{{1, 1}, {4, 4}, {4, 4}};
  EXPECT_THAT(settings,
              ElementsAre(Json{{"image", 0}, {"settings", described(first_)}, {"tokens_per_pass", passes}},
                          Json{{"image", 1}, {"settings", described(second_)}, {"tokens_per_pass", passes}}));
}

TEST_F(SinksTest, TraceShowsTokensAndDraftsOfACycle) {
  Cycle& cycle = first_.statistics.cycles[1];
  cycle.drafted = DraftedTree{{-1, 0, 0, 1}, {2, 3, 9, 4}, 3, {{2, 0.1F, 0.75F}}};
  run(*trace_sink(origin_, path("trace.jsonl")));
  std::istringstream lines(read_file(path("trace.jsonl")));
  std::vector<Json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
  EXPECT_FALSE(all[1].contains("tree"));
  EXPECT_EQ(all[1].at("codes").dump(), "[2]");
  EXPECT_EQ(all[2].at("positions").dump(), "[2,3,4,5]");
  EXPECT_EQ(all[2].at("codes").dump(), "[3,4,5,10]");
  EXPECT_EQ(all[2].at("tree").dump(), R"({"parents":[-1,0,0,1],"tokens":[2,3,9,4]})");
  EXPECT_EQ(all[2].at("accepted_node"), 3);
  EXPECT_EQ(all[2].at("refused").dump(), R"([{"node":2,"token":9,"target":0.1,"draft":0.75}])");
}

// The codes of the smaller image in front come first in the order of generation.
TEST_F(SinksTest, TraceCountsTheTokensOfAPreviewApart) {
  first_.codes.preview = {8, 9};
  first_.statistics.order = {0, 1, 2, 3, 4, 5, 6, 7};
  first_.statistics.cycles[1].committed = 6;
  run(*trace_sink(origin_, path("trace.jsonl")));
  std::istringstream lines(read_file(path("trace.jsonl")));
  std::vector<Json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
  EXPECT_EQ(all[0].at("tokens_per_pass").dump(), "[[6,6],[6,6],[6,6]]");
  EXPECT_EQ(all[1].at("codes").dump(), "[9]");
  EXPECT_EQ(all[2].at("codes").dump(), "[1,2,3,4,5,10]");
}

TEST_F(SinksTest, AcceptanceMapCountsTheTokensOfEveryCycle) {
  run(*acceptance_map_sink(path("map.png")));
  const std::vector<std::int64_t> counts{1, 1, 4, 4, 4, 4};
  const std::vector<AcceptanceGrid> grids{{first_.image, kRows, kColumns, counts},
                                          {second_.image, kRows, kColumns, counts}};
  const std::string words = "eagle chain-4: 12 tokens in 6 target passes, S = 2.00";
  EXPECT_EQ(read_file(path("map.png")), encode_png(acceptance_map(grids, words)));
  run(*growth_sink(path("growth.png")));
  EXPECT_EQ(read_file(path("growth.png")), encode_png(growth_strips(grids, words)));
}

TEST_F(SinksTest, PreviewShowsRowsAsTheyComeAndKeepsPlaces) {
  Grid grid;
  grid.width = kColumns * kSide;
  grid.height = kRows * kSide;
  grid.rows = kRows;
  grid.columns = kColumns;
  std::vector<std::vector<std::int32_t>> asked;
  constexpr double all = 1e9;  // of the time
  const auto sink = preview_sink(
      path("preview.png"),
      [&](const Codes& codes) {
        asked.push_back(codes.ids);
        return flat(50);
      },
      true, all);
  const auto advance = [&](std::size_t first, std::vector<std::vector<std::int32_t>> codes) {
    Progress progress;
    for (std::size_t i = 0; i < codes.size(); ++i) progress.requests.push_back(first + i);
    progress.grid = &grid;
    progress.codes = [&](std::size_t index) { return codes[index]; };
    sink->progress(progress);
  };
  const auto shown = [&] { return read_file(path("preview.png")); };

  advance(0, {{7}, {8}});
  EXPECT_FALSE(std::filesystem::exists(path("preview.png")));  // no row is complete
  advance(0, {{7, 9, 7}, {8}});
  EXPECT_THAT(asked, ElementsAre(ElementsAre(7, 9, 7, 9, 7, 9)));
  Image half = flat(128);
  std::fill_n(half.pixels.begin(), static_cast<std::ptrdiff_t>(kColumns * kSide * kSide * 3),
              std::uint8_t{50});
  EXPECT_EQ(shown(), encode_png(contact_sheet({half, flat(128)}, 2)));
  sink->image(0, request_, first_);
  EXPECT_EQ(shown(), encode_png(contact_sheet({first_.image, flat(128)}, 2)));
  advance(1, {{8, 8}, {6, 6}});  // image 2 takes the place of image 0
  EXPECT_EQ(shown(), encode_png(contact_sheet({half, half}, 2)));
  sink->image(1, request_, second_);
  sink->image(2, request_, first_);
  sink->done();
  EXPECT_EQ(shown(), encode_png(contact_sheet({first_.image, second_.image}, 2)));
}

TEST_F(SinksTest, PreviewPaintsOnceWhereItHasNoTime) {
  Grid grid;
  grid.width = kColumns * kSide;
  grid.height = kRows * kSide;
  grid.rows = kRows;
  grid.columns = kColumns;
  int decoded = 0;
  const auto sink = preview_sink(
      path("preview.png"),
      [&](const Codes&) {
        ++decoded;
        return flat(50);
      },
      true, 0);
  for (std::int32_t tokens = 1; tokens < kRows * kColumns; ++tokens) {
    Progress progress;
    progress.requests = {0};
    progress.grid = &grid;
    progress.codes = [&](std::size_t) { return std::vector<std::int32_t>(static_cast<std::size_t>(tokens)); };
    sink->progress(progress);
  }
  EXPECT_EQ(decoded, 1);
  sink->image(0, request_, first_);
  EXPECT_EQ(read_file(path("preview.png")), encode_png(first_.image));
}

// What comes into being while an image is generated belongs to somebody else.
TEST_F(SinksTest, KeepFilesThatComeIntoBeing) {
  for (const char* name : {"a.png", "b.png", "x"}) write_file(path(name), "kept");
  const auto refuses = [&](const std::unique_ptr<Sink>& sink) {
    return error_of(ExitCode::output, [&] { run(*sink); }) != "";
  };
  EXPECT_TRUE(refuses(image_sink(origin_, {path("a.png"), path("b.png")}, true, false)));
  EXPECT_TRUE(refuses(sheet_sink(path("x"), false)));
  EXPECT_TRUE(refuses(codes_sink(origin_, path("x"), false)));
  EXPECT_TRUE(refuses(trace_sink(origin_, path("x"), false)));
  EXPECT_TRUE(refuses(acceptance_map_sink(path("x"), false)));
  EXPECT_TRUE(refuses(preview_sink(path("x"), {}, false)));
  EXPECT_EQ(read_file(path("a.png")) + read_file(path("x")), "keptkept");
  run(*preview_sink(path("new.png"), {}, false));  // replaces its own file
  EXPECT_EQ(read_file(path("new.png")), encode_png(second_.image));
}

TEST_F(SinksTest, WriteWhatIsCompleteWhenARunIsStopped) {
  Sinks sinks;
  sinks.push_back(sheet_sink(path("sheet.png")));
  sinks.push_back(codes_sink(origin_, path("codes.json")));
  sinks.push_back(trace_sink(origin_, path("trace.jsonl")));
  sinks.push_back(acceptance_map_sink(path("map.png")));
  for (const auto& sink : sinks) sink->stopped();  // before the first image
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  for (const auto& sink : sinks) {
    sink->image(0, request_, first_);
    sink->stopped();
  }
  EXPECT_EQ(read_file(path("sheet.png")), encode_png(first_.image));
  EXPECT_EQ(read_codes(path("codes.json")).size(), 1U);
  const std::string trace = read_file(path("trace.jsonl"));
  EXPECT_EQ(Json::parse(trace.substr(0, trace.find('\n'))).at("image"), 0);
  EXPECT_TRUE(std::filesystem::exists(path("map.png")));
}

// Another program may find the tree's file gone, or changed.
TEST_F(SinksTest, PngCarriesATreeThatAFileGave) {
  first_.method.tree = embed_tree(preset_tree("chain-2"), "t.json");
  const Json described_first = described(first_);
  EXPECT_EQ(described_first.at("tree"), "t.json");
  EXPECT_EQ(described_first.at("tree_paths").dump(), "[[0],[0,0]]");
  run(*image_sink(origin_, {path("a.png"), path("b.png")}));
  EXPECT_EQ(read_recorded(path("a.png")).method.tree, first_.method.tree);
}

TEST_F(SinksTest, SayWhatCannotBeWritten) {
  const auto sink = trace_sink(origin_, path("missing/trace.jsonl"));
  EXPECT_NE(error_of(ExitCode::output, [&] { run(*sink); }), "");
}

}  // namespace
}  // namespace lamplighter
