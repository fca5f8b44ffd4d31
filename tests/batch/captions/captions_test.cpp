#include "batch/captions/captions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/files.h"
#include "tests/batch/caption_sets.h"

namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> prompts_of(std::string_view bytes, const std::string& format = "auto") {
  return prompts(parse_captions(bytes, "c", format));
}

TEST(Captions, ReadsCoco) {
  const Captions captions = parse_captions(kCoco, "c.json");
  EXPECT_THAT(prompts(captions), ElementsAre("A cat.", " Ten\nbirds ", "A cat on ü"));
  EXPECT_EQ(captions[1].image_id, 12433);
  EXPECT_EQ(captions[1].id, "1");
  EXPECT_EQ(captions[0].id, "9");
  EXPECT_TRUE(captions[0].fields.is_null());
  EXPECT_EQ(captions[2].where, "c.json annotations[2]");
  EXPECT_FALSE(captions[0].seed || captions[0].request.class_id);
}

TEST(Captions, ReadsArrays) {
  const Captions captions = parse_captions(
      R"(["one", {"text": "two", "seed": 18446744073709551615, "id": 7, "width": 64, "tag": [1]},
          {"class": 3}])",
      "a");
  EXPECT_THAT(prompts(captions), ElementsAre("one", "two", ""));
  EXPECT_TRUE(captions[0].fields.is_null() && !captions[0].image_id && captions[0].id.empty());
  EXPECT_EQ(captions[1].seed, 18446744073709551615U);
  EXPECT_EQ(captions[1].id, "7");
  EXPECT_EQ(captions[1].request.width, 64);
  EXPECT_EQ(captions[1].fields.at("tag"), Json::array({1}));
  EXPECT_EQ(captions[1].where, "a [1]");
  EXPECT_EQ(captions[2].request.class_id, 3);
}

TEST(Captions, ReadsLinesOfJson) {
  const Captions captions = parse_captions(
      "\xEF\xBB\xBF\r\n{\"tag\": \"single_object\", \"include\": [{\"class\": \"bench\", \"count\": 1}], "
      "\"prompt\": "
      "\"a photo of a bench\"}\r\n\n"
      "{\"caption\": \"b\", \"prompt\": \"a\", \"image_id\": \"00042\", \"cfg_scale\": 2.5, \"top_k\": 9, "
      "\"negative_prompt\": \"fog\"}",
      "g.jsonl");
  EXPECT_THAT(prompts(captions), ElementsAre("a photo of a bench", "a"));
  EXPECT_EQ(captions[0].fields.at("include").at(0).at("count"), 1);
  EXPECT_EQ(captions[0].where, "g.jsonl line 2");
  EXPECT_EQ(captions[1].image_id, 42);
  EXPECT_EQ(captions[1].request.cfg_scale, 2.5F);
  EXPECT_EQ(captions[1].request.top_k, 9);
  EXPECT_EQ(captions[1].request.negative_prompt, "fog");
  EXPECT_FALSE(captions[0].request.negative_prompt);
  EXPECT_EQ(captions[1].where, "g.jsonl line 4");
  EXPECT_THAT(prompts_of(R"({"prompt": "one [\"annotations\"] {"})"), ElementsAre("one [\"annotations\"] {"));
}

TEST(Captions, ReadsTables) {
  const Captions captions = parse_captions(
      "Prompt\tCategory\tNote\r\nbond\tAbstract\tBiology\r\n\r\na \"quoted\" 'text\t\n 7 \tx\t", "p.tsv");
  EXPECT_THAT(prompts(captions), ElementsAre("bond", "a \"quoted\" 'text", " 7 "));
  EXPECT_EQ(captions[0].fields,
            Json::parse(R"({"Prompt": "bond", "Category": "Abstract", "Note": "Biology"})"));
  EXPECT_EQ(captions[1].where, "p.tsv line 4");
}

TEST(Captions, ReadsAFolderOfTexts) {
  const std::string folder = ::testing::TempDir() + "captions_folder";
  std::filesystem::create_directories(folder);
  write_file(folder + "/b.txt", "a boat\n");
  write_file(folder + "/a.txt", "a tree");
  write_file(folder + "/README.md", "none");
  const Captions captions = read_captions(folder);
  EXPECT_THAT(prompts(captions), ElementsAre("a tree", "a boat"));
  EXPECT_EQ(captions[1].id, "b");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_THROW(read_captions(folder), Error);
}

TEST(Captions, TakesOtherNamesOfIds) {
  const Captions captions =
      parse_captions(R"([{"prompt": "a", "prompt_id": 3}, {"text": "b", "item_id": "x"}])", "a");
  EXPECT_EQ(captions[0].id, "3");
  EXPECT_EQ(captions[1].id, "x");
}

TEST(Captions, ReadsFieldsOfTables) {
  const Captions captions = parse_captions(
      "id\timage_id\tcaption\tseed\ttemperature\n007\t042\t12\t5\t0.5\nx\t42\tA dog\t\t\n", "t");
  EXPECT_THAT(prompts(captions), ElementsAre("12", "A dog"));
  EXPECT_EQ(captions[0].id, "007");
  EXPECT_EQ(captions[0].image_id, 42);
  EXPECT_EQ(captions[0].seed, 5U);
  EXPECT_EQ(captions[0].request.temperature, 0.5F);
  EXPECT_FALSE(captions[1].seed || captions[1].request.temperature);
}

TEST(Captions, TablesOfImagesSayTheirSizes) {
  EXPECT_EQ(parse_captions("id\timage_id\tcaption\theight\twidth\n1\t2\tx\t480\t640", "t")[0].request.width,
            0);
  EXPECT_EQ(parse_captions("caption\theight\twidth\nx\t480\t640", "t")[0].request.width, 640);
}

TEST(Captions, ReadsPlainText) {
  const Captions captions = parse_captions("\n a cat \r\n \t\n<image> \xF0\x9F\x98\x80\x1B[0m", "t");
  EXPECT_THAT(prompts(captions), ElementsAre(" a cat ", "<image> \xF0\x9F\x98\x80\x1B[0m"));
  EXPECT_EQ(captions[1].where, "t line 4");
  EXPECT_TRUE(captions[0].fields.is_null());
}

TEST(Captions, FindsTheFormat) {
  EXPECT_THAT(prompts_of("[oil on canvas] a cat\nb"), ElementsAre("[oil on canvas] a cat", "b"));
  EXPECT_THAT(prompts_of("text\na"), ElementsAre("text", "a"));
  EXPECT_THAT(prompts_of("text\na", "tsv"), ElementsAre("a"));
  EXPECT_THAT(prompts_of("Prompt\na"), ElementsAre("a"));
  EXPECT_THAT(prompts_of(" \r\n\nid\tText\n1\ta"), ElementsAre("a"));
  EXPECT_THAT(prompts_of("Prompt\na", "text"), ElementsAre("Prompt", "a"));
  EXPECT_THAT(prompts_of("a\tb\nc"), ElementsAre("a\tb", "c"));
  EXPECT_THAT(prompts_of("{x}", "text"), ElementsAre("{x}"));
  EXPECT_THAT(prompts_of("\n [\"a\"]\n"), ElementsAre("a"));
  EXPECT_THAT(message_of([] { prompts_of("a", "xml"); }, ExitCode::usage), HasSubstr("got 'xml'"));
}

TEST(Captions, KeepsOddTextByteForByte) {
  EXPECT_THAT(
      prompts_of(R"(["</s><racm3:break>", "\u200f\ud83d\ude00 e\u0301", "a\nb\u001b[31m", "\u00a0"])"),
      ElementsAre("</s><racm3:break>", "\u200f\U0001F600 e\u0301", "a\nb\x1b[31m", "\u00a0"));
}

class CaptionFiles : public testing::Test {
 protected:
  CaptionFiles() : folder_(testing::TempDir() + "captions_test." + std::to_string(::getpid())) {
    std::filesystem::create_directory(folder_);
  }
  ~CaptionFiles() override { std::filesystem::remove_all(folder_); }
  std::string at(const std::string& name) const { return join_path(folder_, name); }

  std::string folder_;
};

TEST_F(CaptionFiles, AreRead) {
  write_file(at("c.txt"), "a\nb");
  const Captions captions = read_captions(at("c.txt"));
  EXPECT_THAT(prompts(captions), ElementsAre("a", "b"));
  EXPECT_EQ(captions[0].where, at("c.txt") + " line 1");
}

TEST_F(CaptionFiles, MayBePipes) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  std::thread writer([&] { write_file(at("pipe"), "[\"a\"]"); });
  EXPECT_THAT(prompts(read_captions(at("pipe"))), ElementsAre("a"));
  writer.join();
}

TEST_F(CaptionFiles, ThatCannotBeReadAreNamed) {
  EXPECT_THAT(message_of([&] { read_captions(at("none")); }), HasSubstr("none: No such file"));
  EXPECT_THAT(message_of([&] { read_captions(folder_); }), HasSubstr("a folder without .txt files"));
  EXPECT_THAT(message_of([] { read_captions("/dev/zero"); }), HasSubstr("/dev/zero: it is a device"));
  write_file(at("large"), "12345");
  EXPECT_THAT(message_of([&] { read_input(at("large"), 4); }), HasSubstr("5 bytes, expected at most 4"));
  std::filesystem::permissions(at("large"), std::filesystem::perms::none);
  if (::geteuid() == 0) return;  // root may read everything
  EXPECT_THAT(message_of([&] { read_captions(at("large")); }), HasSubstr("Permission denied"));
}

TEST(SharedCaptions, ReadsPartiPrompts) {
  if (!std::filesystem::exists(kShared + "PartiPrompts.tsv")) GTEST_SKIP() << "no " << kShared;
  const Captions captions = read_captions(kShared + "PartiPrompts.tsv");
  EXPECT_EQ(captions.size(), 1632U);
  EXPECT_EQ(captions[0].request.prompt, "bond");
  EXPECT_EQ(captions[0].fields.at("Challenge"), "Basic");
}

}  // namespace
}  // namespace lamplighter
