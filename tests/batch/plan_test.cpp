#include "batch/plan.h"

#include <gmock/gmock.h>

#include "tests/batch/caption_sets.h"
#include "tests/batch/records.h"

namespace lamplighter {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class MakePlan : public FolderTest {
 protected:
  Plan plan(const std::string& text, const std::string& name = "captions.txt") {
    write(name, text);
    options.captions = path(name);
    return make_plan(options);
  }
  std::string rejected(const std::string& text, ExitCode code, const std::string& name = "captions.txt") {
    return message_of([&] { plan(text, name); }, code);
  }
  static std::vector<std::uint64_t> seeds(const Plan& plan) {
    std::vector<std::uint64_t> all;
    for (const PlannedImage& image : plan.images) {
      EXPECT_EQ(image.request.seed, image.record.seed);
      all.push_back(image.record.seed);
    }
    return all;
  }
  static std::vector<std::string> files(const Plan& plan) {
    std::vector<std::string> all;
    for (const PlannedImage& image : plan.images) all.push_back(image.record.file);
    return all;
  }

  PlanOptions options;
};

TEST_F(MakePlan, SeedsCountSkippedCaptions) {
  options.repeats = 3;
  options.offset = 1;
  options.limit = 2;
  options.seed = 100;
  const Plan some = plan("a\nb\nc\nd\n");
  EXPECT_EQ(some.captions, 2U);
  EXPECT_THAT(seeds(some), ElementsAre(103, 104, 105, 106, 107, 108));
  EXPECT_EQ(some.images[3].record.index, 2U);
  EXPECT_EQ(some.images[3].request.prompt, "c");
  EXPECT_EQ(some.images[5].record.repeat, 2U);
  EXPECT_THAT(files(some), ElementsAre("images/00001_0.png", "images/00001_1.png", "images/00001_2.png",
                                       "images/00002_0.png", "images/00002_1.png", "images/00002_2.png"));
}

TEST_F(MakePlan, OwnValuesComeFirst) {
  options.repeats = 2;
  options.defaults.cfg_scale = 7.0;
  options.defaults.top_k = 50;
  const Plan both = plan(R"({"prompt": "a", "seed": 9, "cfg_scale": 2.5}
{"prompt": "b"})",
                         "captions.jsonl");
  EXPECT_THAT(seeds(both), ElementsAre(9, 10, 44, 45));
  EXPECT_EQ(both.images[0].request.cfg_scale, 2.5);
  EXPECT_EQ(both.images[0].request.top_k, 50);
  EXPECT_EQ(both.images[2].request.cfg_scale, 7.0);
}

TEST_F(MakePlan, NamesFallBackFromIdToImageToIndex) {
  options.name = "{id}.png";
  EXPECT_THAT(files(plan(R"([{"prompt": "a", "id": "x"}, {"prompt": "b", "image_id": 7}, {"prompt": "c"}])",
                         "captions.json")),
              ElementsAre("images/x.png", "images/7.png", "images/2.png"));
}

TEST_F(MakePlan, HostileIdsAreNoNames) {
  options.name = "{id}";
  for (const char* id : {"../x", "/etc/x", ".x", "-rf", "a b", "a/b", "\\u0000", "\\u00fc"}) {
    EXPECT_THAT(
        rejected(std::string(R"([{"prompt": "a", "id": ")") + id + "\"}]", ExitCode::input, "captions.json"),
        HasSubstr("captions.json"))
        << id;
  }
  EXPECT_THAT(rejected("[{\"prompt\": \"a\", \"id\": \"" + std::string(300, 'x') + "\"}]", ExitCode::input,
                       "captions.json"),
              HasSubstr("captions.json"));
}

TEST_F(MakePlan, EqualNamesAreReportedWithBothPositions) {
  options.name = "same";
  EXPECT_THAT(rejected("a\nb\n", ExitCode::usage),
              AllOf(HasSubstr("images/same.png"), HasSubstr("line 1"), HasSubstr("line 2")));
}

TEST_F(MakePlan, PatternsAreCompleted) {
  options.name = "{seed}.png";
  options.repeats = 2;
  EXPECT_THAT(files(plan("a\n")), ElementsAre("images/42.png", "images/43.png"));
  options.name = "p{index}";
  EXPECT_THAT(files(plan("a\n")), ElementsAre("images/p0_0.png", "images/p0_1.png"));
}

TEST_F(MakePlan, TheDigestIsOfWhatCaptionsSay) {
  const std::string text = plan("a\nb\n").sha256;
  EXPECT_EQ(plan(R"(["a", "b"])", "captions.json").sha256, text);
  EXPECT_NE(plan("b\na\n").sha256, text);
  EXPECT_NE(plan("a\n").sha256, text);
  const std::string records =
      plan("{\"prompt\": \"a\", \"seed\": 3}\n{\"prompt\": \"b\"}\n", "c.jsonl").sha256;
  EXPECT_EQ(plan(R"([{"seed": 3, "prompt": "a"}, {"prompt": "b"}])", "c.json").sha256, records);
  EXPECT_NE(plan(R"([{"seed": 4, "prompt": "a"}, {"prompt": "b"}])", "c.json").sha256, records);
  options.repeats = 4;
  EXPECT_EQ(plan("a\nb\n").sha256, text);
  options.offset = 1;
  EXPECT_NE(plan("a\nb\n").sha256, text);
}

TEST_F(MakePlan, NumbersAreChecked) {
  options.offset = 2;
  EXPECT_THAT(rejected("a\nb\n", ExitCode::usage), HasSubstr("offset: got 2, expected less than 2"));
  options.offset = 0;
  options.limit = 0;
  EXPECT_THAT(rejected("a\n", ExitCode::usage), HasSubstr("limit: got 0"));
  options.limit = ~std::size_t{0};
  EXPECT_EQ(plan("a\nb\n").captions, 2U);
  for (const int repeats : {0, -1, 500'001}) {
    options.repeats = repeats;
    EXPECT_THAT(rejected("a\nb\n", ExitCode::usage),
                HasSubstr("batch_count: got " + std::to_string(repeats)));
  }
}

}  // namespace
}  // namespace lamplighter
