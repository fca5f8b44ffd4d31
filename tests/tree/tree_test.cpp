#include "tree/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/files.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string rejection(const std::vector<TreePath>& paths) {
  return error_of(ExitCode::usage, [&] { make_tree(paths, "--tree"); });
}

std::string file_rejection(const std::string& text) {
  return error_of(ExitCode::input, [&] { parse_tree(text, "tree.json"); });
}

TEST(TreeTest, SortsByDepthAndPathAndLinksNodes) {
  const Tree tree = make_tree({{1, 0}, {1}, {0, 0}, {0}, {0, 1}, {1, 0, 0}});
  EXPECT_EQ(tree.size(), 7);
  EXPECT_EQ(tree.drafted(), 6);
  EXPECT_EQ(tree.max_depth(), 3);
  EXPECT_EQ(tree.max_children(), 2);
  EXPECT_THAT(tree.parent, ElementsAre(-1, 0, 0, 1, 1, 2, 5));
  EXPECT_THAT(tree.rank, ElementsAre(0, 0, 1, 0, 1, 0, 0));
  EXPECT_THAT(tree.depth, ElementsAre(0, 1, 1, 2, 2, 2, 3));
  EXPECT_THAT(tree.child_begin, ElementsAre(1, 3, 5, 6, 6, 6, 7, 7));
  EXPECT_THAT(tree.level_begin, ElementsAre(0, 1, 3, 6, 7));
  EXPECT_THAT(tree.expanded, ElementsAre(0, 1, 2, 5));
  EXPECT_THAT(tree.draft_row, ElementsAre(0, 1, 2, -1, -1, 3, -1));
  EXPECT_THAT(tree.ancestors, ElementsAre(1, 3, 5, 11, 19, 37, 101));
  EXPECT_THAT(tree.level(2), ElementsAre(3, 4, 5));
  EXPECT_THAT(tree.expanded_level(1), ElementsAre(1, 2));
  EXPECT_THAT(tree.expanded_level(3), IsEmpty());
  EXPECT_THAT(tree.nodes_to(6), ElementsAre(0, 2, 5, 6));
}

TEST(TreeTest, RootAlone) {
  const Tree tree = preset_tree("chain-0");
  EXPECT_EQ(tree.size(), 1);
  EXPECT_EQ(tree.max_depth(), 0);
  EXPECT_EQ(tree.max_children(), 0);
  EXPECT_THAT(tree.expanded, IsEmpty());
  EXPECT_THAT(tree.level_begin, ElementsAre(0, 1));
  EXPECT_THAT(tree.draft_row, ElementsAre(-1));
}

TEST(TreeTest, PresetsHaveTheirPublishedShapes) {
  const auto widths = [](const Tree& tree) {
    std::vector<std::size_t> counts;
    for (std::int64_t d = 1; d <= tree.max_depth(); ++d) counts.push_back(tree.level(d).size());
    return counts;
  };
  const Tree small = preset_tree("lantern-26");
  EXPECT_EQ(small.size(), 26);
  EXPECT_THAT(widths(small), ElementsAre(4, 8, 8, 3, 2));
  EXPECT_THAT(small.parent, ElementsAre(-1, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 5, 5, 6, 6, 7, 7, 8, 13,
                                        13, 13, 21, 21));
  const Tree large = preset_tree("lantern-58");
  EXPECT_EQ(large.size(), 58);
  EXPECT_THAT(widths(large), ElementsAre(5, 13, 16, 14, 9));
  EXPECT_EQ(large.expanded.size(), 25U);
  EXPECT_EQ(large.parent, (std::vector<std::int64_t>{
                              -1, 0,  0,  0,  0,  0,  1,  1,  1,  1,  2,  2,  2,  3,  3,  3,  4,  4,  5,  6,
                              6,  6,  6,  7,  7,  7,  8,  8,  8,  9,  9,  10, 10, 11, 13, 19, 19, 19, 19, 20,
                              20, 20, 21, 21, 22, 23, 23, 24, 26, 35, 35, 35, 36, 36, 39, 39, 40, 42}));
  const Tree chain = preset_tree("chain-63");
  EXPECT_EQ(chain.max_depth(), 63);
  EXPECT_EQ(chain.ancestors.back(), ~std::uint64_t{0});
}

TEST(TreeTest, FansHaveCandidatesUnderEveryNodeOfTheirFirstDepths) {
  const Tree fan = preset_tree("fan-3-2-5");
  EXPECT_EQ(fan.drafted(), 3 + 9 + 3);
  EXPECT_THAT(first_children(fan), ElementsAre(0, 1, 4, 13, 14, 15));
  EXPECT_THAT(fan.level(2), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_EQ(fan.child_count(5), 0);
  EXPECT_EQ(preset_tree("fan-2-2-2").drafted(), 6);
  EXPECT_EQ(preset_tree("fan-3-2-53").drafted(), 63);
  for (const char* name : {"fan-3-2-54", "fan-2-6-6", "fan-9-9-9", "fan-1-1-3", "fan-3-0-3", "fan-3-3-2",
                           "fan-3-2", "fan-3-2-5-1", "fan-3-2-5-", "fan-03-2-5", "fan--3-5", "fan-a-2-5",
                           "fan", "chain-64", "chain-01", "chain-", "chain-1-2"}) {
    EXPECT_FALSE(is_tree_preset(name)) << name;
    EXPECT_THROW(preset_tree(name), Error) << name;
  }
}

TEST(TreeTest, RejectsPathsThatFormNoTree) {
  EXPECT_EQ(rejection({{0}, {1, 0}}), "--tree: path [1,0]: its parent [1] is missing");
  EXPECT_EQ(rejection({{0}, {2}}), "--tree: path [2]: its earlier sibling [1] is missing");
  EXPECT_EQ(rejection({{0}, {0}}), "--tree: path [0]: is listed twice");
  EXPECT_EQ(rejection({{0}, {}}), "--tree: path []: is the root, which is not listed");
  EXPECT_EQ(rejection({{-1}}), "--tree: path [-1]: ranks start at 0");
  std::vector<TreePath> many;
  for (std::int64_t rank = 0; rank < 64; ++rank) many.push_back({rank});
  EXPECT_EQ(rejection(many), "--tree: got 64 drafted nodes, expected at most 63");
  many.pop_back();
  EXPECT_EQ(rejection(many), "");
}

TEST(TreeTest, FilesAreReadBackAsWritten) {
  const Tree tree = preset_tree("lantern-26");
  const std::string text = tree_to_json(tree, {{"machine", "two cores"}}).dump();
  EXPECT_THAT(text, HasSubstr("\"about\":{\"machine\":\"two cores\"}"));
  EXPECT_EQ(parse_tree(text, "tree.json").paths, tree.paths);
  EXPECT_THAT(tree_to_json(tree).dump(), testing::Not(HasSubstr("about")));

  const std::string file = testing::TempDir() + "tree_test.json";
  write_file(file, text);
  EXPECT_EQ(load_tree(file).paths, tree.paths);
  EXPECT_EQ(load_tree("chain-4").drafted(), 4);
}

TEST(TreeTest, FilesAreBoundedAndPlain) {
  const auto rejection = [](const std::string& name) -> std::string {
    return error_of([&] { load_tree(name); });
  };
  EXPECT_THAT(rejection("/dev/zero"), HasSubstr("/dev/zero: it is a device or a pipe"));
  const std::string file = testing::TempDir() + "large_tree_test.json";
  write_file(file, R"({"paths": [[0]], "about": ")" + std::string(1 << 20, 'x') + "\"}");
  EXPECT_THAT(rejection(file), HasSubstr("expected at most 1048576"));
}

TEST(TreeTest, TextStandsForItsFile) {
  const Tree tree = preset_tree("chain-3");
  const std::string text = embed_tree(tree, "my/t.json");
  EXPECT_EQ(load_tree(text).paths, tree.paths);
  EXPECT_EQ(tree_name(text), "my/t.json");
  EXPECT_EQ(tree_name("my/t.json"), "my/t.json");
  EXPECT_EQ(tree_name(R"({"paths": []})"), "given");
  EXPECT_FALSE(is_tree_file(text));
  EXPECT_FALSE(is_tree_file("chain-3"));
  EXPECT_TRUE(is_tree_file("./chain-3"));
  EXPECT_THROW(load_tree(R"({"paths": [[3]]})"), Error);
}

TEST(TreeTest, FileErrorsNameThePosition) {
  EXPECT_THAT(file_rejection("{}"), HasSubstr("tree.json: paths is missing"));
  EXPECT_THAT(file_rejection(R"({"paths": 3})"), HasSubstr("tree.json: paths: got 3, expected a list"));
  EXPECT_EQ(file_rejection(R"({"paths": [[0], 1]})"),
            "tree.json: paths[1]: got 1, expected a list of child ranks");
  EXPECT_EQ(file_rejection(R"({"paths": [[0], [-1]]})"),
            "tree.json: paths[1]: got [-1], expected child ranks from 0 to 62");
  EXPECT_THAT(file_rejection(R"({"paths": [[0.5]]})"), HasSubstr("paths[0]: got [0.5]"));
  EXPECT_THAT(file_rejection(R"({"paths": [[0, 0]]})"), HasSubstr("its parent [0] is missing"));
  EXPECT_THAT(file_rejection(R"({"paths": [], "shape": 1})"), HasSubstr("shape"));
  EXPECT_EQ(file_rejection(R"({"paths": []})"), "");
}

TEST(TreeTest, UnknownNamesListThePresets) {
  for (const char* name : {"chain-64", "chain-", "chain-04", "chain-4x", "lantern", "chain--1"}) {
    EXPECT_FALSE(is_tree_preset(name)) << name;
    EXPECT_THAT(error_of(ExitCode::usage, [&] { load_tree(name); }),
                HasSubstr(std::string("tree \"") + name + "\": expected chain-1 to chain-63"));
  }
  EXPECT_THROW(load_tree("./missing.json"), Error);
}

}  // namespace
}  // namespace lamplighter
