#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/batch/caption_sets.h"

namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SelectCaptions, OneAnImage) {
  const auto select = [](const std::string& rule) {
    return prompts(select_captions(parse_captions(kCoco, "c"), rule));
  };
  EXPECT_THAT(select("all"), ElementsAre("A cat.", " Ten\nbirds ", "A cat on ü"));
  EXPECT_THAT(select("first"), ElementsAre("A cat.", " Ten\nbirds "));
  EXPECT_THAT(select("longest"), ElementsAre("A cat on ü", " Ten\nbirds "));
}

TEST(SelectCaptions, LongestCountsCodePointsAndKeepsTheFirst) {
  const auto longest = [](std::string_view bytes) {
    return prompts(select_captions(parse_captions(bytes, "c"), "longest"));
  };
  EXPECT_THAT(longest(R"([{"image_id": 1, "text": "abc"}, {"image_id": 1, "text": "üü"}])"),
              ElementsAre("abc"));
  EXPECT_THAT(longest(R"([{"image_id": 1, "text": "ab"}, {"image_id": 1, "text": "üü"}])"),
              ElementsAre("ab"));
}

TEST(SelectCaptions, KeepsCaptionsWithoutAnImageInOrder) {
  const Captions captions =
      parse_captions(R"(["a", {"image_id": 1, "text": "b"}, "a", {"image_id": 1, "text": "cc"}])", "c");
  EXPECT_THAT(prompts(select_captions(captions, "longest")), ElementsAre("a", "cc", "a"));
}

TEST(SelectCaptions, RandomDependsOnTheImageAlone) {
  std::string lines, reversed;
  for (int image = 0; image < 400; ++image) {
    for (const char* word : {"a", "b", "c", "d"}) {
      lines += R"({"prompt": ")" + std::string(word) + R"(", "image_id": )" + std::to_string(image) + "}\n";
    }
  }
  const Captions captions = parse_captions(lines, "c");
  const auto chosen = prompts(select_captions(captions, "random:7"));
  EXPECT_EQ(chosen, prompts(select_captions(captions, "random:7")));
  EXPECT_NE(chosen, prompts(select_captions(captions, "random:8")));
  for (const char* word : {"a", "b", "c", "d"}) {
    const auto count = std::count(chosen.begin(), chosen.end(), word);
    EXPECT_GT(count, 60) << word;  // 100 of 400 are expected
    EXPECT_LT(count, 140) << word;
  }
  const Captions later(captions.begin() + 4 * 100, captions.end());
  EXPECT_EQ(prompts(select_captions(later, "random:7")),
            std::vector<std::string>(chosen.begin() + 100, chosen.end()));
}

TEST(SelectCaptions, RefusesOtherRules) {
  for (const char* rule : {"", "shortest", "random", "random:", "random:x", "random:-1", "random:1 "}) {
    EXPECT_THAT(message_of([&] { select_captions({}, rule); }, ExitCode::usage),
                HasSubstr("expected all, first, longest or random:SEED"));
  }
}

TEST(SharedCaptions, LongestOfVal2017AreLanterns) {
  if (!std::filesystem::exists(kShared + "captions_val2017.json")) GTEST_SKIP() << "no " << kShared;
  const Captions captions = read_captions(kShared + "captions_val2017.json");
  EXPECT_EQ(captions.size(), 25014U);
  EXPECT_EQ(select_captions(captions, "first").size(), 5000U);
  EXPECT_EQ(prompts(select_captions(captions, "longest")),
            prompts(read_captions(kShared + "captions_val2017_longest.json")));
}

}  // namespace
}  // namespace lamplighter
