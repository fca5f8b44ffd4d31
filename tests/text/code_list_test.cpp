#include "text/code_list.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "lamplighter/error.h"

namespace lamplighter {
namespace {

// A file that a test writes, which goes away with it.
struct ListsFile {
  std::string path = testing::TempDir() + "codes.json";
  explicit ListsFile(const std::string& text) { std::ofstream(path) << text; }
  ~ListsFile() { std::remove(path.c_str()); }
};

CodeLists lists() {
  const ListsFile file(R"({"codes": 40, "lengths": [1, 4, 9]})");
  return CodeLists(file.path);
}

// The message of a prompt that is refused.
std::string refusal(const std::string& prompt) {
  try {
    lists().encode(prompt);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::input);
    return error.what();
  }
  ADD_FAILURE() << prompt;
  return "";
}

TEST(CodeLists, ReadsNumbersBetweenSpacesAndCommas) {
  const std::vector<std::int64_t> expected{0, 39, 7, 7};
  for (const char* text : {"0 39 7 7", " 0,39, 7\t\n7 ", "000 39 07 7,,"})
    EXPECT_EQ(lists().encode(text), expected);
  EXPECT_EQ(lists().encode(code_list({0, 39, 7, 7})), expected);
}

TEST(CodeLists, RefusesOtherWords) {
  for (const char* word : {"40", "-1", "+1", "1.0", "x", "9223372036854775808", "1\u00a02"}) {
    const std::string message = refusal("0 " + std::string(word) + " 7 7");
    EXPECT_NE(message.find("expected a list of 1, 4 or 9 codes of 0..39"), std::string::npos) << message;
  }
}

TEST(CodeLists, RefusesOtherLengths) {
  EXPECT_EQ(refusal("1 2"), "prompt: got 2 codes, expected 1, 4 or 9 codes of 0..39");
  EXPECT_EQ(refusal(" , "), "prompt: got 0 codes, expected 1, 4 or 9 codes of 0..39");
}

TEST(CodeLists, RefusesDamagedFiles) {
  for (const char* text : {"", "[]", "{}", R"({"codes": 0, "lengths": [1]})",
                           R"({"codes": 2, "lengths": []})", R"({"codes": 2, "lengths": [4, 4]})",
                           R"({"codes": 2, "lengths": [0]})", R"({"codes": 2, "lengths": [1], "more": 1})"}) {
    const ListsFile file(text);
    EXPECT_THROW(CodeLists(file.path), Error) << text;
  }
}

}  // namespace
}  // namespace lamplighter
