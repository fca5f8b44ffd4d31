#include "base/suggestion.h"

#include <gtest/gtest.h>

namespace lamplighter {
namespace {

TEST(Suggestion, IsTheNearestWordWithTwoMistakesAtMost) {
  const std::vector<std::string> known{"exact", "lantern", "lantern++", "top"};
  EXPECT_EQ(did_you_mean("lanten", known), "; did you mean lantern?");
  EXPECT_EQ(did_you_mean("lantern+", known), "; did you mean lantern?");
  EXPECT_EQ(did_you_mean("exatc", known), "; did you mean exact?");
  EXPECT_EQ(did_you_mean("pot", known), "; did you mean top?");
  EXPECT_EQ(did_you_mean("magic", known), "");
  EXPECT_EQ(did_you_mean("lanterns", known, 1), "; did you mean lantern?");
  EXPECT_EQ(did_you_mean("lanterned", known, 1), "");
  EXPECT_EQ(did_you_mean("top", {"to", "toppp"}), "; did you mean to?");
  EXPECT_EQ(did_you_mean("", known), "");
  EXPECT_EQ(did_you_mean(std::string(100'000, 'x'), known), "");
}

TEST(Suggestion, NamesAreListedInTheirOrder) {
  EXPECT_EQ(list_of({"b", "a"}), "b, a");
  EXPECT_EQ(list_of({}), "");
}

}  // namespace
}  // namespace lamplighter
