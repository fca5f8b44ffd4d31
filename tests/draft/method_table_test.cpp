#include "draft/method_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "draft/auto.h"
#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Manifest bundle(bool drafter) {
  Manifest manifest;
  manifest.tokens.codebook_size = 64;
  if (drafter) manifest.drafters["main"] = {};
  for (const char* module : {"target", "image_decoder"}) manifest.modules[module] = {};
  manifest.prompt = PromptEntry{};
  manifest.prompt->kind = "class";
  manifest.grids.push_back({32, 32, 4, 4, {}, {}, {}});
  return manifest;
}

TableRow row(const std::string& method, const std::string& tree, double speedup) {
  TableRow one;
  one.method.method = method;
  one.method.tree = tree;
  one.speedup = speedup;
  return one;
}

class MethodTable : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = (fs::path(::testing::TempDir()) / (std::string("table.") + test->name())).string();
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  MethodOptions fastest(int batch_size = 1, bool drafter = true) const {
    const auto found = fastest_lossless(load_runs(folder_, key_), batch_size, bundle(drafter), "cpu");
    return found ? found->row.method : MethodOptions{};
  }

  std::string folder_;
  TableKey key_{"abc", "AMD EPYC", "avx2", "bf16", 2};
};

TEST_F(MethodTable, TheFastestLosslessMethodIsTaken) {
  TableRow relaxed = row("lantern++", "chain-4", 9);
  save_run(folder_, key_,
           {1, {row("ar", "", 1), row("eagle", "chain-2", 2), row("eagle", "chain-3", 2.5), relaxed}});
  EXPECT_EQ(fastest().tree, "chain-3");
  EXPECT_EQ(fastest().method, "eagle");
  save_run(folder_, key_, {1, {row("ar", "", 1), row("eagle", "chain-2", 0.9)}});
  EXPECT_EQ(fastest().method, "ar");
}

TEST_F(MethodTable, ItHoldsForOneBundleAndMachine) {
  save_run(folder_, key_, {1, {row("eagle", "chain-2", 2)}});
  for (const TableKey& other :
       {TableKey{"abd", "AMD EPYC", "avx2", "bf16", 2}, TableKey{"abc", "AMD", "avx2", "bf16", 2},
        TableKey{"abc", "AMD EPYC", "avx512", "bf16", 2}, TableKey{"abc", "AMD EPYC", "avx2", "fp32", 2},
        TableKey{"abc", "AMD EPYC", "avx2", "bf16", 1}})
    EXPECT_TRUE(load_runs(folder_, other).empty());
  // A table of another machine under this name is an error.
  const TableKey other{"abd", "AMD EPYC", "avx2", "bf16", 2};
  fs::copy_file(table_path(folder_, key_), table_path(folder_, other));
  EXPECT_THROW(load_runs(folder_, other), Error);
}

TEST_F(MethodTable, TheNearestBatchSizeCounts) {
  save_run(folder_, key_, {1, {row("eagle", "chain-4", 2)}});
  save_run(folder_, key_, {8, {row("eagle", "chain-1", 2)}});
  save_run(folder_, key_, {1, {row("eagle", "chain-3", 2)}});
  EXPECT_EQ(load_runs(folder_, key_).size(), 2U);
  EXPECT_EQ(fastest(1).tree, "chain-3");
  EXPECT_EQ(fastest(2).tree, "chain-3");
  EXPECT_EQ(fastest(4).tree, "chain-1");
  EXPECT_EQ(fastest(16).tree, "chain-1");
  EXPECT_FALSE(fastest_lossless(load_runs(folder_, key_), 17, bundle(true), "cpu"));
}

TEST_F(MethodTable, TheBaselineIsTakenWhereNothingPays) {
  save_run(folder_, key_, {1, {row("eagle", "chain-3", kLeastSpeedup)}});
  EXPECT_EQ(fastest().method, "ar");
  save_run(folder_, key_, {1, {row("eagle", "chain-3", 1.04)}});
  EXPECT_EQ(fastest().method, "eagle");
}

TEST_F(MethodTable, ATrialStaysBesideWhatWasGeneratedAndCountsLess) {
  TableRun trial{2, {row("sjd", "chain-2", 3)}, {{1, 2.5}, {3, 4}}, true};
  save_run(folder_, key_, trial);
  EXPECT_EQ(fastest(2).method, "sjd");
  save_run(folder_, key_, {2, {row("eagle", "chain-3", 2)}});
  EXPECT_EQ(fastest(2).method, "eagle");
  save_run(folder_, key_, {4, {row("eagle", "chain-1", 2)}});
  trial.costs.back().ms = 5;
  save_run(folder_, key_, trial);
  const std::vector<SavedTable> tables = tables_of(folder_, "abc");
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(tables[0].key.instructions, "avx2");
  ASSERT_EQ(tables[0].runs.size(), 3U);
  ASSERT_EQ(tables[0].runs[2].costs.size(), 2U);
  EXPECT_EQ(tables[0].runs[2].costs[1].rows, 3);
  EXPECT_EQ(tables[0].runs[2].costs[1].ms, 5);
  EXPECT_TRUE(tables_of(folder_, "abd").empty());
}

TEST_F(MethodTable, TreesStay) {
  fs::create_directories(folder_);
  const std::string file = join_path(folder_, "mine.json");
  write_file(file, R"({"paths": [[0], [1]]})");
  TableRow tuned = row("eagle", "", 3);
  tuned.tree = preset_tree("chain-2");
  save_run(folder_, key_, {1, {row("eagle", file, 2)}});
  save_run(folder_, key_, {2, {tuned}});
  fs::remove(file);
  EXPECT_EQ(load_tree(fastest(1).tree).max_children(), 2);
  EXPECT_EQ(load_tree(fastest(2).tree).max_depth(), 2);
}

TEST_F(MethodTable, OptionsComeBack) {
  TableRow one = row("eagle-2", "", 2);
  one.method.dynamic_depth = 3;
  one.method.rule = "exact";
  save_run(folder_, key_, {1, {one}});
  EXPECT_EQ(fastest().dynamic_depth, 3);
  EXPECT_EQ(fastest().rule, "exact");
}

TEST_F(MethodTable, DamagedTablesAreReportedAndReplaced) {
  save_run(folder_, key_, {1, {row("eagle", "chain-2", 2)}});
  const std::string path = table_path(folder_, key_), good = read_file(path);
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& text :
       {std::string("{"), std::string(), good.substr(0, good.size() / 2),
        edited("\"schema\": 2", "\"schema\": 1"), edited("\"speedup\": 2.0", "\"speedup\": -2"),
        edited("\"speedup\": 2.0", "\"speedup\": \"2\""), edited("\"tree\"", "\"twig\""),
        edited("\"batch_size\": 1", "\"batch_size\": 0")}) {
    write_file(path, text);
    EXPECT_THAT(error_of(ExitCode::input, [&] { load_runs(folder_, key_); }), HasSubstr(path));
    save_run(folder_, key_, {1, {row("eagle", "chain-3", 2)}});
    EXPECT_EQ(fastest().tree, "chain-3");
  }
}

TEST_F(MethodTable, NothingElseIsLeftInTheFolder) {
  save_run(folder_, key_, {1, {row("eagle", "chain-2", 2)}});
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 2U);  // the table and its lock
}

TEST_F(MethodTable, AnImpossibleFolderIsReported) {
  write_file(folder_, "a file");
  EXPECT_THROW(save_run(folder_, key_, {1, {row("ar", "", 1)}}), Error);
}

TEST(Auto, TakesNoOptions) {
  MethodOptions wanted;
  EXPECT_FALSE(is_auto(wanted));
  wanted.method = "auto";
  EXPECT_TRUE(is_auto(wanted));
  wanted.tree = "chain-3";
  EXPECT_THROW(is_auto(wanted), Error);
  wanted.method = "fastest";
  EXPECT_THROW(is_auto(wanted), Error);
}

}  // namespace
}  // namespace lamplighter
