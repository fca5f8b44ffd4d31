#include "batch/layout.h"

#include <gmock/gmock.h>

#include "lamplighter/image.h"
#include "tests/batch/caption_sets.h"
#include "tests/batch/records.h"

namespace lamplighter {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class LayoutTest : public FolderTest {
 protected:
  LayoutTest() {
    fs::create_directories(path("images"));
    fs::create_directories(path(".tmp"));
  }
  void generate(std::size_t index, std::size_t repeat, const std::string& id = "") {
    Record record = generated_record(index, repeat);
    record.id = id;
    Image image{2, 2, std::vector<std::uint8_t>(12, static_cast<std::uint8_t>(10 * repeat))};
    write(record.file, encode_png(image));
    images_.push_back(record);
  }
  void arrange(const char* layout) const { find_layout(layout).arrange(folder_, images_); }
  // Lists files with their content and links with their targets.
  std::vector<std::string> tree(const std::string& name) const {
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(path(name))) {
      if (entry.is_directory()) continue;
      all.push_back(
          entry.path().lexically_relative(path(name)).string() + "=" +
          (entry.is_symlink() ? fs::read_symlink(entry.path()).string() : read_file(entry.path().string())));
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  std::vector<Record> images_;
};

TEST_F(LayoutTest, GenEvalFindsItsTree) {
  generate(0, 0);
  generate(0, 1);
  generate(12, 0);
  images_[2].fields = {{"prompt", "a dog"}, {"tag", "counting"}};
  arrange("geneval");
  const std::vector<std::string> expected{
      "00000/metadata.jsonl={\"prompt\":\"caption 0\"}\n", "00000/samples/00000.png=../../../images/0_0.png",
      "00000/samples/00001.png=../../../images/0_1.png",
      "00012/metadata.jsonl={\"prompt\":\"a dog\",\"tag\":\"counting\"}\n",
      "00012/samples/00000.png=../../../images/12_0.png"};
  EXPECT_EQ(tree("geneval"), expected);
  EXPECT_EQ(read_file(path("geneval/00012/samples/00000.png")), read_file(path("images/12_0.png")));
  arrange("geneval");
  EXPECT_EQ(tree("geneval"), expected);
}

TEST_F(LayoutTest, DpgFindsGridsOfCompleteCaptions) {
  for (std::size_t repeat = 0; repeat < 4; ++repeat) generate(0, repeat, "cat");
  for (std::size_t repeat = 0; repeat < 3; ++repeat) generate(1, repeat, "dog");
  for (std::size_t repeat = 0; repeat < 4; ++repeat) generate(2, repeat, "../bird");
  arrange("dpg");
  const auto first = tree("dpg");
  ASSERT_EQ(first.size(), 2U);
  EXPECT_THAT(first[0], HasSubstr("00002.png="));
  EXPECT_THAT(first[1], HasSubstr("cat.png="));
  const Image grid = read_image(path("dpg/cat.png"));
  ASSERT_EQ(grid.width, 4);
  ASSERT_EQ(grid.height, 4);
  EXPECT_EQ(grid.pixels[0], 0);  // in rows
  EXPECT_EQ(grid.pixels[3 * 3], 10);
  EXPECT_EQ(grid.pixels[3 * 12], 20);
  EXPECT_EQ(grid.pixels[3 * 15], 30);
  arrange("dpg");
  EXPECT_EQ(tree("dpg"), first);
  generate(1, 3, "dog");
  arrange("dpg");
  EXPECT_EQ(tree("dpg").size(), 3U);
}

TEST(Layout, IsFoundByName) {
  for (const Layout& layout : layouts()) EXPECT_EQ(&find_layout(layout.name), &layout);
  EXPECT_THAT(message_of([] { find_layout("flart"); }, ExitCode::usage),
              HasSubstr("layout: got 'flart', expected flat, coco, geneval, dpg, longtext"));
}

}  // namespace
}  // namespace lamplighter
