#include "text/bpe_pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using testing::HasSubstr;
using Pieces = std::vector<std::string>;

Json split_stage(const Json& pattern) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}, {"invert", false}};
}
Json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", use_regex}};
}
Json sequence(const std::vector<Json>& stages) {
  return {{"type", "Sequence"}, {"pretokenizers", stages}};
}

Pieces split(const Json& stage, const std::string& text) {
  const Json file = {{"pre_tokenizer", stage}};
  JsonReader reader(file, "file.json", ExitCode::bundle);
  const std::u32string codes = decode_utf8(text);
  Pieces pieces;
  for (const pattern::Text piece : BpePretokenizer(reader).split(codes)) pieces.push_back(encode_utf8(piece));
  return pieces;
}

std::string message(const Json& stage) {
  return error_of(ExitCode::bundle, [&] { split(stage, ""); });
}

Pieces split_alone(const Json& stage, const std::string& text) {
  return split(sequence({stage, byte_level(false)}), text);
}

TEST(BpePretokenizer, SplitsByKnownExpressions) {
  const auto by = [](const char* regex, const char* text) {
    return split_alone(split_stage({{"Regex", regex}}), text);
  };
  EXPECT_EQ(by("<sentinel:[0-9]+>", "a<sentinel:12><sentinel:><sentinel:3"),
            (Pieces{"a", "<sentinel:12>", "<sentinel:><sentinel:3"}));
  EXPECT_EQ(by("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "IMGIMGABIZIMGIMGJZIMGIMGABCDEZIMGIMGZ"),
            (Pieces{"IMGIMGABIZ", "IMGIMGJZIMGIMGABCDEZIMGIMGZ"}));
  for (const char* regex : {"([\t\n]|    |  )", R"(([\t\n]|    |  ))"}) {
    EXPECT_EQ(by(regex, "a  b       c\td\n\ne"),
              (Pieces{"a", "  ", "b", "    ", "  ", " c", "\t", "d", "\n", "\n", "e"}));
  }
  EXPECT_EQ(by(R"(\s?[a-zé]+)", "an  été 1b"), (Pieces{"an", " ", " été", " 1", "b"}));
  EXPECT_EQ(by(R"(\s+$)", "a  b 　\n c\n\n "), (Pieces{"a  b", " 　", "\n c", "\n\n "}));
  EXPECT_EQ(by(R"(\p{N})", "ab12\u00BDc"), (Pieces{"ab", "1", "2", "\u00BD", "c"}));
  EXPECT_EQ(by(R"([\p{P}!-/:-@\[-`{-~])", "a$\u201Cb"), (Pieces{"a", "$", "\u201C", "b"}));
  EXPECT_EQ(by(R"(\p{P})", "a$\u201Cb"), (Pieces{"a$", "\u201C", "b"}));
}

TEST(BpePretokenizer, SplitsAsGpt2) {
  const Pieces expected = {"We", "'ll", " see", " 12", " %&", "  ", " the", "\u00A0", "end", "\n \n"};
  const std::string text = "We'll see 12 %&   the\u00A0end\n \n";
  EXPECT_EQ(split(byte_level(true), text), expected);
  const std::string regex = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
  EXPECT_EQ(split_alone(split_stage({{"Regex", regex}}), "a \u00A0b\nc"),
            (Pieces{"a", " ", "\u00A0", "b", "\n", "c"}));
  EXPECT_EQ(split_alone(split_stage({{"Regex", regex + R"(|\s+)"}}), "a \u00A0b\nc"),
            (Pieces{"a", " ", "\u00A0", "b", "\n", "c"}));
  EXPECT_EQ(split(byte_level(true), "a\n \n"), (Pieces{"a", "\n \n"}));  // white space at the end stays whole
}

TEST(BpePretokenizer, StagesWorkOnThePiecesOfTheOneBefore) {
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const Json punctuation = {{"type", "Punctuation"}};
  EXPECT_EQ(split(sequence({digits, punctuation, byte_level(true)}), "a man's 768x7"),
            (Pieces{"a", " man", "'", "s", " ", "7", "6", "8", "x", "7"}));
  EXPECT_EQ(split_alone({{"type", "Digits"}, {"individual_digits", false}}, "a768\u2167b"),
            (Pieces{"a", "768\u2167", "b"}));
  EXPECT_EQ(split_alone(split_stage({{"String", "an"}}), "banana"), (Pieces{"b", "an", "an", "a"}));
  EXPECT_EQ(split(byte_level(true), ""), Pieces{});
}

// Searching for the end of a line from every space would visit 10^11 characters.
TEST(BpePretokenizer, LooksThroughALongRunOfSpacesOnce) {
  const std::string text = std::string(400'000, ' ') + "x";
  EXPECT_EQ(split_alone(split_stage({{"Regex", R"(\s+$)"}}), text), (Pieces{text}));
}

TEST(BpePretokenizer, RefusesWhatItDoesNotDo) {
  EXPECT_THAT(message({{"type", "Whitespace"}}),
              HasSubstr("file.json: pre_tokenizer.type: got \"Whitespace\", expected one of"));
  EXPECT_THAT(message({{"type", "Digits"}, {"individual_digits", true}}),
              HasSubstr("expected a ByteLevel stage"));
  EXPECT_THAT(message(nullptr), HasSubstr("pre_tokenizer: got null"));
  EXPECT_THAT(message(sequence({byte_level(false), byte_level(true)})),
              HasSubstr("pretokenizers[1]: no stage can follow ByteLevel"));
  Json stage = byte_level(true);
  stage["add_prefix_space"] = true;
  EXPECT_THAT(message(stage), HasSubstr("add_prefix_space: got true, expected false"));
  stage = split_stage({{"Regex", "[a-z]*"}});
  EXPECT_THAT(message(stage), HasSubstr("pattern.Regex: got \"[a-z]*\", expected one of"));
  EXPECT_THAT(message(split_stage({{"String", ""}})), HasSubstr("pattern.String: got \"\""));
  for (const char* behavior : {"Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"}) {
    stage = split_stage({{"String", "a"}});
    stage["behavior"] = behavior;
    EXPECT_THAT(message(stage), HasSubstr("behavior: got \"" + std::string(behavior)));
    EXPECT_THAT(message({{"type", "Punctuation"}, {"behavior", behavior}}), HasSubstr("behavior: got"));
  }
  stage = split_stage({{"String", "a"}});
  stage["invert"] = true;
  EXPECT_THAT(message(stage), HasSubstr("invert: got true, expected false"));
  stage["invert"] = false;
  stage["more"] = 1;
  EXPECT_THAT(message(stage), HasSubstr("unknown field pre_tokenizer.more"));
}

}  // namespace
}  // namespace lamplighter
