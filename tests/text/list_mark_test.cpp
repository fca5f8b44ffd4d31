#include "text/list_mark.h"

#include <gtest/gtest.h>

#include <string>

namespace lamplighter {
namespace {

std::string text_of(std::string_view line) {
  return std::string(line.substr(find_list_mark(line).size));
}

TEST(ListMark, StandsInFrontOfAText) {
  for (const char* mark : {"- ", "* ", "+ ", "> ", "  - ", "\u2022 ", "\u00B7\t", "1. ", "12) ", "(3) ",
                           "4: ", "5\t", "a) ", "(b) ", "C. "}) {
    EXPECT_EQ(text_of(std::string(mark) + "a cat"), "a cat") << mark;
    EXPECT_NE(find_list_mark(std::string(mark) + "a cat").kind, 0) << mark;
  }
}

TEST(ListMark, IsNoPartOfAText) {
  for (const char* line :
       {"", " ", "-", "- ", "-5 degrees", "--prompt", "*bold* cat", "3 dogs", "3.5 m", "1,000 cats",
        "10:30 h", "a cat", "a. ", "(red) cat", "1.", "123456. x", "mr. x", "<3 cats"}) {
    EXPECT_EQ(find_list_mark(line).kind, 0) << line;
    EXPECT_EQ(find_list_mark(line).size, 0U) << line;
  }
}

TEST(ListMark, ContinuesAListOfItsKind) {
  const auto continues = [](const char* line, const char* next) {
    return continues_list(find_list_mark(line), find_list_mark(next));
  };
  EXPECT_TRUE(continues("- a", "  - b"));
  EXPECT_TRUE(continues("9. a", "10. b"));
  EXPECT_TRUE(continues("1. a", "1. b"));
  EXPECT_TRUE(continues("a) x", "b) y"));
  EXPECT_FALSE(continues("- a", "* b"));
  EXPECT_FALSE(continues("1. a", "2) b"));
  EXPECT_FALSE(continues("1. a", "3. b"));
  EXPECT_FALSE(continues("A. Einstein", "M. Curie"));
  EXPECT_FALSE(continues("a cat", "a dog"));
}

}  // namespace
}  // namespace lamplighter
