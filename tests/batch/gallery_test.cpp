#include "batch/gallery/gallery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image/acceptance_map.h"
#include "tests/base/pages.h"

namespace lamplighter {
namespace {

using test::count;
using test::data_of;
using testing::HasSubstr;
using testing::Not;

Record image(const std::string& caption, std::uint64_t seed = 42) {
  Record record;
  record.caption = caption;
  record.seed = seed;
  record.file = "images/00000.png";
  record.width = record.height = 32;
  record.rows = record.columns = 4;
  record.method = "eagle";
  record.tokens = 16;
  record.target_passes = 8;
  record.committed = {3, 3, 3, 2, 2, 1, 1};
  record.text_ms = 10;
  record.decode_ms = 90;
  return record;
}

Record failure(const std::string& caption, const std::string& error) {
  Record record;
  record.caption = caption;
  record.error = error;
  return record;
}

Json data_of(const std::vector<Record>& records) {
  return data_of(gallery_page({"set.json", "demo", 5}, records));
}

TEST(Gallery, ListsImagesAndFailures) {
  Record second = image("a boat", 18446744073709551615U);
  second.id = "boat-7";
  second.image_id = 139;
  second.target_passes = 16;
  second.image_ms = 50;
  const Json data = data_of({image("a lighthouse"), failure("a cat", "too long"), second});
  const Json facts = {
      {"title", "set.json"}, {"model", "demo"}, {"planned", 5}, {"step_compression", 1.5}, {"ms", 125.0}};
  EXPECT_EQ(data["facts"], facts);
  EXPECT_EQ(data["kinds"], Json::parse(R"([[32, 32, 4, 4, "eagle"]])"));
  const Json images = Json::parse(R"([
      ["images/00000.png", "a lighthouse", "42", "", 0, 16, 8, 100.0, "c3b2a2"],
      ["images/00000.png", "a boat", "18446744073709551615", "boat-7 139", 0, 16, 16, 150.0, "c3b2a2"]])");
  EXPECT_EQ(data["images"], images);
  EXPECT_EQ(data["failures"], Json::parse(R"([["a cat", "0", "", "too long"]])"));
}

TEST(Gallery, ARunWithoutImagesHasNoMeans) {
  const Json data = data_of(std::vector<Record>{});
  EXPECT_FALSE(data["facts"].contains("step_compression"));
  EXPECT_TRUE(data["images"].empty());
  EXPECT_EQ(data["colours"].size(), 1U);
}

TEST(Gallery, AClassIsNamed) {
  Record record = image("");
  record.class_id = 207;
  EXPECT_EQ(data_of({record})["images"][0][1], "class 207");
}

TEST(Gallery, ImagesOfOtherKindsSayWhichTheyAre) {
  Record other = image("b");
  other.method = "lantern";
  const Json data = data_of({image("a"), other, image("c")});
  EXPECT_EQ(data["kinds"].size(), 2U);
  EXPECT_EQ(data["images"][1][4], 1);
  EXPECT_EQ(data["images"][2][4], 0);
}

TEST(Gallery, ImagesHaveTheOrderOfTheirTokens) {
  Record other = image("b");
  other.order = {0, 2, 1, 3};
  const Json data = data_of({image("a"), other, other});
  ASSERT_EQ(data["kinds"].size(), 2U);
  EXPECT_EQ(data["kinds"][0].size(), 5U);
  EXPECT_EQ(data["kinds"][1][5], Json(other.order));
}

TEST(Gallery, HostileTextsStayTexts) {
  const std::vector<std::string> texts{"</script><script>alert(1)</script>", "<!--<script>",
                                       "\"]}, '`${1}` \\u003c/script> \\", "GALLERY_DATA",
                                       "&lt;b&gt; \xf0\x9f\x8f\xae \xe2\x80\xa8 \x01 tab\t line\n"};
  const std::string plain = gallery_page({"", "", 0}, {image("")});
  for (const std::string& text : texts) {
    const std::string page = gallery_page({text, text, 1}, {image(text), failure(text, text)});
    for (const char* part : {"<", "</script", "<!--"})
      EXPECT_EQ(count(page, part), count(plain, part)) << text;
    const Json data = data_of(page);
    for (const char* key : {"title", "model"}) EXPECT_EQ(data["facts"][key], text);
    EXPECT_EQ(data["images"][0][1], text);
    EXPECT_EQ(data["failures"][0][0], text);
    EXPECT_EQ(data["failures"][0][3], text);
  }
}

TEST(Gallery, IllFormedTextIsReplaced) {
  EXPECT_EQ(data_of({image("a\xff")})["images"][0][1], "a\xef\xbf\xbd");
}

TEST(Gallery, PacksWhatCyclesCommitted) {
  const auto packed = [](const std::vector<std::int64_t>& committed) {
    Record record = image("a");
    record.committed = committed;
    return data_of({record})["images"][0][8].get<std::string>();
  };
  EXPECT_EQ(packed({}), "");
  EXPECT_EQ(packed({1, 26, 27, 52, 53}), "az+a+z++a");
  EXPECT_EQ(packed(std::vector<std::int64_t>(2304, 1)), "a2304");
  EXPECT_EQ(packed({2, 0, -1, 2}), "bb");
  EXPECT_LT(packed({std::int64_t{1} << 60}).size(), 50U);
}

TEST(Gallery, ColoursAreThoseOfTheAcceptanceMap) {
  const Json colours = data_of({image("a"), image("b")})["colours"];
  ASSERT_EQ(colours.size(), 3U);
  EXPECT_EQ(colours[0], "#440154");
  EXPECT_EQ(colours[2], "#fde725");
  const Colour middle = acceptance_colour(2, 3);
  EXPECT_EQ(std::stoi(colours[1].get<std::string>().substr(1), nullptr, 16),
            middle[0] << 16 | middle[1] << 8 | middle[2]);
}

TEST(Gallery, EqualRecordsGiveEqualBytesWithoutANetwork) {
  const std::vector<Record> records{image("a"), failure("b", "no")};
  const std::string page = gallery_page({"set.json", "demo", 2}, records);
  EXPECT_EQ(page, gallery_page({"set.json", "demo", 2}, records));
  EXPECT_THAT(page, Not(HasSubstr("://")));
}

TEST(Gallery, AnImageTakesFewBytes) {
  const GalleryFacts facts{"set.json", "demo", 5000};
  std::vector<Record> records{image("a lighthouse")};
  const std::size_t one = gallery_page(facts, records).size();
  records.resize(5000, records.front());
  EXPECT_LT(gallery_page(facts, records).size(), one + 5000 * 100);
}

}  // namespace
}  // namespace lamplighter
