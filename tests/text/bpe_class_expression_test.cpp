#include "text/bpe_class_expression.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace lamplighter {
namespace {

// Length of the match at the start of a text; -1 without one.
int length(const char* expression, const char* text) {
  const auto match = read_class_expression(expression);
  if (!match) return -2;
  const std::u32string codes = decode_utf8(text);
  const auto end = (*match)(codes, 0);
  return end ? static_cast<int>(*end) : -1;
}

TEST(BpeClassExpression, MatchesCharactersAndRanges) {
  EXPECT_EQ(length("[a-cx]+", "abcxyz"), 4);
  EXPECT_EQ(length("[a-cx]", "abcx"), 1);
  EXPECT_EQ(length("[a-cx]+", "dabc"), -1);
  EXPECT_EQ(length("[\r\n]", "\n\r"), 1);
  EXPECT_EQ(length("[\\r\\n\\t]+", "\n\r\tx"), 3);
  EXPECT_EQ(length("[\\[\\]\\-\\\\\\^\\/]+", "[]-\\^/a"), 6);
  EXPECT_EQ(length("[b-dc-ea]+", "abcdef"), 5);  // in any order, and overlapping
  EXPECT_EQ(length("[!-/:-~]+", "0"), -1);
  EXPECT_EQ(length("[\u4e00-\u9fa5\u0800-\u4e00]+", "\u4e2d\u0800\u07ff"), 2);
  EXPECT_EQ(length("[\U00010400-\U0001044f]+", "\U00010400\U0001044f\U00010450"), 2);
}

TEST(BpeClassExpression, TakesASpaceInFront) {
  EXPECT_EQ(length("\\s?[a-z]+", "ab"), 2);
  EXPECT_EQ(length("\\s?[a-z]+", " ab c"), 3);
  EXPECT_EQ(length("\\s?[a-z]+", "  ab"), -1);
  EXPECT_EQ(length("\\s?[a-z]+", "\u3000ab"), 3);
  EXPECT_EQ(length("\\s?[\u3000-\u3002]+", "\u3000"), 1);  // the space is the character, too
  EXPECT_EQ(length("\\s?[\u3000-\u3002]+", "\u3000\u3000\u3001"), 3);
}

TEST(BpeClassExpression, KnowsProperties) {
  EXPECT_EQ(length("\\s?\\p{L}+", " \u00E9\u4e2da1"), 4);
  EXPECT_EQ(length("\\p{P}", "!?"), 1);
  EXPECT_EQ(length("[\\p{N}a-c\\p{P}]+", "1b\u00BD!d"), 4);
}

TEST(BpeClassExpression, KnowsNothingElse) {
  for (const char* text :
       {"",        "a",          "[",          "[]",     "[a",          "[a-]",  "[-a]",
        "[z-a]",   "[^a]",       "[a&&b]",     "[a[b]]", "[[:alpha:]]", "[\\s]", "[\\p{Z}]",
        "\\p{L}*", "[\\p{L}-z]", "[!-\\p{L}]", "\\P{L}", "[a]*",        "[a]+b", "[a]{2}",
        "(?i)[a]", "\\s?",       "\\s*[a]",    "\\s[a]", "[\\",         "[a]]",  "[a]++"})
    EXPECT_EQ(length(text, "a"), -2) << text;
}

}  // namespace
}  // namespace lamplighter
