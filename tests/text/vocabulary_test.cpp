#include "text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Vocabulary landscapes() {
  VocabularyEntry entry;
  entry.kinds = {{"subject", {{"boat", {"boat", "sail boat"}}, {"balloon", {"hot-air balloon"}}}},
                 {"colour", {{"red", {"red"}}, {"none", {}}}},
                 {"place", {{"sea", {"on the sea"}}}}};
  entry.subject = "subject";
  entry.other = {"a", "image", "of"};
  return Vocabulary(entry);
}

TEST(Vocabulary, KnowsItsOwnWordsInAnySpelling) {
  for (const char* caption : {"a red boat on the sea", "Red SAIL BOAT, the sea!", "  a hot-air\tballoon. "}) {
    const Understanding understood = landscapes().read(caption);
    EXPECT_TRUE(understood.whole()) << caption;
  }
}

TEST(Vocabulary, NamesOtherWordsOnceAndInOrder) {
  const Understanding understood =
      landscapes().read("a zebra, a red boat and a zebra on the élan 2nd boat's");
  EXPECT_TRUE(understood.subject);
  EXPECT_THAT(understood.unknown, ElementsAre("zebra", "and", "élan", "2nd", "boat's"));
  EXPECT_FALSE(understood.whole());
}

TEST(Vocabulary, WantsASubjectAsAWholePhrase) {
  for (const char* caption : {"red", "a red image of the sea", "hot-air on the sea", "balloon", "", "boats"})
    EXPECT_FALSE(landscapes().read(caption).subject) << caption;
  EXPECT_THAT(landscapes().read("hot-air on the sea").unknown, IsEmpty());
}

}  // namespace
}  // namespace lamplighter
