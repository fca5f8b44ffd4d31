#include "batch/arrange.h"

#include <gmock/gmock.h>

#include "tests/batch/caption_sets.h"
#include "tests/batch/records.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class Arrange : public FolderTest {
 protected:
  Plan plan(const std::string& text, const std::string& name = "c.txt") {
    write(name, text);
    options.captions = path(name);
    return make_plan(options);
  }
  // Records of the images of a plan, as if it had been generated.
  std::vector<Record> generated(const std::string& text, const std::string& name = "c.txt") {
    std::vector<Record> records;
    for (const PlannedImage& image : plan(text, name).images) {
      records.push_back(image.record);
      records.back().run_seed = options.seed;
    }
    return records;
  }
  static Arrangement arranged(const Plan& plan, const std::vector<Record>& records) {
    return arrange(plan, records, [](const Record&) { return true; });
  }
  static std::vector<std::string> captions(const std::vector<Record>& records) {
    std::vector<std::string> texts;
    for (const Record& record : records) texts.push_back(record.caption + " " + std::to_string(record.index));
    return texts;
  }

  PlanOptions options;
};

TEST_F(Arrange, ChangesNothingWhereCaptionsAreTheSame) {
  const std::vector<Record> records = generated("a\nb\n");
  const Arrangement same = arranged(plan("a\nb\n"), records);
  EXPECT_TRUE(same.extends && !same.changes);
  EXPECT_EQ(same.present, (ImageSet{{0, 0}, {1, 0}}));
  const Arrangement more = arranged(plan("a\nb\nc\n"), records);
  EXPECT_TRUE(more.extends && !more.changes);
  options.limit = 1;
  EXPECT_TRUE(arranged(plan("a\nb\nc\n"), records).extends);  // b is outside of the plan and stays
}

TEST_F(Arrange, ImagesFollowTheirCaptions) {
  const Arrangement front = arranged(plan("new\na\nb\n"), generated("a\nb\n"));
  EXPECT_TRUE(!front.extends && front.changes);
  EXPECT_EQ(front.present, (ImageSet{{1, 0}, {2, 0}}));
  EXPECT_THAT(front.moves, UnorderedElementsAre(Pair("images/00000.png", "images/00001.png"),
                                                Pair("images/00001.png", "images/00002.png")));
  EXPECT_THAT(captions(front.records), UnorderedElementsAre("a 1", "b 2"));
  EXPECT_EQ(front.records[0].seed, 42U);  // with which it was generated
  const Arrangement swapped = arranged(plan("b\na\n"), generated("a\nb\n"));
  EXPECT_EQ(swapped.present.size(), 2U);
  EXPECT_THAT(swapped.replaced, IsEmpty());
}

TEST_F(Arrange, EditedAndRemovedCaptionsAreReplaced) {
  const Arrangement edited = arranged(plan("A\nb\n"), generated("a\nb\nc\n"));
  EXPECT_EQ(edited.present, (ImageSet{{1, 0}}));
  EXPECT_THAT(captions(edited.replaced), ElementsAre("a 0", "c 2"));
  EXPECT_FALSE(edited.extends);
}

TEST_F(Arrange, EqualCaptionsKeepTheirNumber) {
  const Arrangement fewer = arranged(plan("a\na\n"), generated("a\na\na\n"));
  EXPECT_EQ(fewer.present.size(), 2U);
  EXPECT_EQ(fewer.replaced.size(), 1U);
  const Arrangement more = arranged(plan("x\na\na\na\n"), generated("a\na\n"));
  EXPECT_EQ(more.present, (ImageSet{{1, 0}, {2, 0}}));
  EXPECT_THAT(more.moves, ElementsAre(Pair("images/00000.png", "images/00002.png")));  // 1 stays in place
}

TEST_F(Arrange, OwnSettingsBelongToTheCaption) {
  const std::string before = R"([{"prompt": "a", "seed": 3, "tag": 1}])";
  const auto after = [&](const std::string& text) {
    return arranged(plan(text, "d.json"), generated(before, "c.json"));
  };
  EXPECT_TRUE(after(R"([{"Prompt": "a", "Seed": 3.0, "tag": 1}])").extends);
  EXPECT_TRUE(after(R"([{"prompt": "a", "seed": 3, "tag": 2}])").changes);  // the record alone
  EXPECT_THAT(after(R"([{"prompt": "a", "seed": 3, "tag": 2}])").moves, IsEmpty());
  for (const char* other : {R"([{"prompt": "a", "seed": 4}])", R"([{"prompt": "a", "seed": 3, "id": "x"}])",
                            R"([{"prompt": "a", "seed": 3, "top_k": 5}])", R"([{"prompt": "b", "seed": 3}])"})
    EXPECT_THAT(after(other).present, IsEmpty()) << other;
}

TEST_F(Arrange, FailuresAndMissingImagesAreNotPresent) {
  std::vector<Record> records = generated("a\nb\nc\n");
  records[1].error = "no memory";
  const Arrangement some =
      arrange(plan("a\nb\nc\n"), records, [](const Record& record) { return record.index != 2; });
  EXPECT_EQ(some.present, (ImageSet{{0, 0}}));
  EXPECT_FALSE(some.changes);
}

TEST_F(Arrange, OtherSeedsStay) {
  const std::vector<Record> records = generated("a\nb\n");
  options.seed = 100;
  options.is_further_seed = true;
  const Plan second = plan("a\nb\n");
  EXPECT_EQ(second.images[1].record.file, "images/00001_101.png");
  const Arrangement both = arranged(second, records);
  EXPECT_TRUE(both.extends && !both.changes);
  EXPECT_THAT(both.present, IsEmpty());
  EXPECT_EQ(both.records.size(), 2U);
}

TEST_F(Arrange, NamesWithSeedsHoldImagesOfThatSeed) {
  options.name = "{seed}";
  const Arrangement front = arranged(plan("new\na\n"), generated("a\n"));
  EXPECT_THAT(front.present, IsEmpty());
  EXPECT_EQ(front.replaced.size(), 1U);
}

// Of another seed, so that names have an index and a seed.
TEST_F(Arrange, NamesKeepTheSeedOfTheImage) {
  options.is_further_seed = true;
  options.seed = 77;
  const Plan wanted = plan("new\na\n");
  const Arrangement front = arranged(wanted, generated("a\n"));
  EXPECT_THAT(front.moves, ElementsAre(Pair("images/00000_77.png", "images/00001_77.png")));
  EXPECT_EQ(front.present, (ImageSet{{1, 0}}));
  const Arrangement again = arranged(plan("new\na\n"), front.records);
  EXPECT_TRUE(!again.changes && again.extends);
}

TEST_F(Arrange, NoImageIsGeneratedTwice) {
  const std::vector<Record> equal = generated("a\na\n");  // seeds 42 and 43
  options.repeats = 2;
  const Arrangement more = arranged(plan("a\na\n"), equal);  // the first one now has seeds 42 and 43
  EXPECT_EQ(more.present, (ImageSet{{0, 0}, {0, 1}}));
  options.repeats = 1;
  const std::vector<Record> second = {generated("x\na\n")[1]};
  options.repeats = 2;
  EXPECT_EQ(arranged(plan("a\n"), second).present, (ImageSet{{0, 1}}));
}

TEST_F(Arrange, ImagesOfOtherSeedsAreNotOverwritten) {
  options.name = "{seed}";
  const std::vector<Record> records = generated("a\nb\n");
  options.seed = 43;
  const Plan second = plan("a\nb\n");
  EXPECT_THAT(error_of(ExitCode::usage, [&] { arranged(second, records); }),
              testing::HasSubstr("images/43.png is an image of another seed"));
}

}  // namespace
}  // namespace lamplighter
