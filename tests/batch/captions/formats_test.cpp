#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "batch/captions/entries.h"
#include "tests/batch/caption_sets.h"

// Caption sets as spreadsheets, data frames, benchmarks and web UIs write them.
namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Captions parse(std::string_view bytes, const std::string& name = "c", const std::string& column = "") {
  return parse_captions(bytes, name, "auto", column);
}

std::string utf16(std::u16string_view text, bool big_endian) {
  std::string bytes;
  for (const char16_t unit : std::u16string(u"\uFEFF") + std::u16string(text)) {
    const auto high = static_cast<char>(unit >> 8), low = static_cast<char>(unit & 0xFF);
    bytes += big_endian ? std::string{high, low} : std::string{low, high};
  }
  return bytes;
}

// Old spreadsheets end lines with a carriage return; "cat" of several files leaves marks at their beginnings.
TEST(Texts, MayHaveOtherLineEndsAndMarks) {
  EXPECT_THAT(prompts(parse("a cat\ra dog\r")), ElementsAre("a cat", "a dog"));
  const Captions table = parse("prompt,seed\ra,3\rb,4\r", "c.csv");
  EXPECT_THAT(prompts(table), ElementsAre("a", "b"));
  EXPECT_EQ(table[1].seed, 4U);
  EXPECT_THAT(prompts(parse("\uFEFFa\n\uFEFFb\n\uFEFF{\"text\": \"c\"}\n")), ElementsAre("a", "b", "c"));
}

TEST(Texts, AreNoOtherFiles) {
  for (const char* begin : {"<!DOCTYPE html>\n<html>", "%PDF-1.4\n", "BZh91AY", "\xFF\xD8\xFF\xE0"})
    EXPECT_THAT(message_of([&] { parse(std::string(begin) + "\na cat\n"); }), HasSubstr("c: it is "))
        << begin;
  EXPECT_THAT(message_of([] { parse(std::string(":\x04>\x04\n\0", 6)); }), HasSubstr("UTF-16?"));
  EXPECT_THAT(message_of([] { parse("- a cat\n", "c.yaml"); }), HasSubstr("c.yaml: got a file of settings"));
  EXPECT_THAT(
      message_of([] { parse("a cat\nNegative prompt: dog\nSteps: 20, Sampler: Euler a, Seed: 1\n"); }),
      HasSubstr("c line 2: got Negative prompt: dog, expected a caption"));
  for (const char* line : {"negative prompt:dog", "NEGATIVE PROMPT : dog", "steps: 20, sampler: Euler a",
                           "Steps:20,Size: 8x8, Sampler: x", "a boat Steps: 20,Sampler: x, Seed: 5",
                           "a boat. Negative prompt: fog", "Steps: 20, Seed: 3", "steps: 30, CFG scale: 7",
                           "Steps: 4,Size: 512x512"})
    EXPECT_THAT(message_of([&] { parse(std::string("a cat\n") + line + "\n"); }),
                HasSubstr("expected a caption"))
        << line;
  EXPECT_EQ(prompts(parse("Steps: a staircase, seeds on it\na boat: red\n")).size(), 2U);
}

TEST(Texts, AreNoFlagsWithDashes) {
  for (const char* line :
       {"\u2014prompt \"a\" \u2014seed 3", "\u2013-prompt=a", "\u2013\u2013Negative-Prompt x"})
    EXPECT_THAT(message_of([&] { parse(std::string(line) + "\n"); }), HasSubstr("expected two hyphens: --"))
        << line;
  EXPECT_EQ(prompts(parse("\u2014promptly a cat\n\u2014 prompt\n")).size(), 2U);
}

TEST(Texts, AreNoShortFlags) {
  for (const char* line : {"-p \"a red boat\" -b 2", "-n dark a red boat", "-s=3 a cat"})
    EXPECT_THAT(message_of([&] { parse(std::string(line) + "\n"); }), HasSubstr("by their long names"))
        << line;
  EXPECT_EQ(prompts(parse("-purple boats\n-pale\n")).size(), 2U);
}

TEST(CsvCaptions, HaveOneColumn) {
  EXPECT_THAT(prompts(parse("prompt\na cat, on a mat\n\"b\nc\"\n", "c.csv")),
              ElementsAre("a cat, on a mat", "b\nc"));
  EXPECT_THAT(message_of([] { parse("prompt\n\"a\nb\n", "c.csv"); }), HasSubstr("c.csv line 2: got a quote"));
}

TEST(CsvCaptions, HaveSpacesAroundNumbersAndBars) {
  EXPECT_EQ(parse("prompt, seed\na, 42\n", "c.csv")[0].seed, 42U);
  EXPECT_EQ(parse("prompt|seed\na, b|3\n")[0].request.prompt, "a, b");
}

TEST(CsvCaptions, HaveQuotesAndLineEndsInCells) {
  const Captions captions = parse(
      "Prompts,Category\r\n\"A red, round \"\"ball\"\"\",Colors\r\n\"two\nlines\",\"\"\r\n\r\nplain "
      "\"text\",x\r\n,,\r\n");
  EXPECT_THAT(prompts(captions), ElementsAre("A red, round \"ball\"", "two\nlines", "plain \"text\""));
  EXPECT_EQ(captions[0].fields, Json::parse(R"({"Prompts": "A red, round \"ball\"", "Category": "Colors"})"));
  EXPECT_EQ(captions[1].where, "c line 3");
  EXPECT_EQ(captions[2].where, "c line 6");
}

TEST(CsvCaptions, OfDataFramesHaveAnIndexAndFloats) {
  const Captions captions = parse(",prompt,seed,top_k,note\n0,a,42.0,5.0,\n1,b,,,x\n", "frame.csv");
  EXPECT_THAT(prompts(captions), ElementsAre("a", "b"));
  EXPECT_EQ(captions[0].seed, 42U);
  EXPECT_EQ(captions[0].request.top_k, 5);
  EXPECT_FALSE(captions[1].seed || captions[1].request.top_k);
}

TEST(JsonCaptions, MayBeAListOfImages) {
  EXPECT_THAT(prompts(parse(R"({"images": [{"id": 3, "Text": "a", "width": 9}, {"id": 4, "Text": "b"}]})")),
              ElementsAre("a", "b"));
  EXPECT_THAT(prompts(parse(R"({"images": ["a", "b"], "info": {"year": 2017}})")), ElementsAre("a", "b"));
  for (const char* text : {R"({"images": [{"id": 3, "file_name": "a.jpg"}]})", R"({"images": []})"})
    EXPECT_THAT(message_of([&] { parse(text); }), HasSubstr("annotations is missing")) << text;
}

TEST(JsonCaptions, MayHaveNumbersAsTexts) {
  const Captions captions = parse(
      R"([{"prompt": "a", "seed": "42", "top_p": "0.5", "top_k": "7.0"}, {"prompt": "b", "seed": "42.0", "id": "042"},
          {"prompt": "7", "seed": " 3"}])");
  EXPECT_EQ(captions[0].seed, 42U);
  EXPECT_FLOAT_EQ(captions[0].request.top_p.value(), 0.5F);
  EXPECT_EQ(captions[0].request.top_k, 7);
  EXPECT_EQ(captions[1].seed, 42U);
  EXPECT_EQ(captions[1].id, "042");
  EXPECT_EQ(captions[2].request.prompt, "7");
  EXPECT_EQ(captions[2].seed, 3U);
  EXPECT_EQ(parse("{\"prompt\": \"a\", \"seed\": \"42\"}\n", "c.jsonl")[0].seed, 42U);
  EXPECT_EQ(parse(R"({"x": {"prompt": "a", "seed": "42"}})")[0].seed, 42U);
  EXPECT_EQ(parse("--prompt a --seed \"42\"\n")[0].seed, 42U);
}

TEST(CsvCaptions, OfOneIgCountIdsInCategories) {
  const Captions captions = parse(
      "category,id,prompt_en,type,prompt_length,class\nAnime,000,\"a, "
      "b\",T,short,None\nPortrait,000,c,T,short,fauvism\n",
      "OneIG-Bench.csv");
  EXPECT_THAT(prompts(captions), ElementsAre("a, b", "c"));
  EXPECT_EQ(captions[0].id, "Anime-000");
  EXPECT_EQ(captions[1].id, "Portrait-000");
  EXPECT_FALSE(captions[1].request.class_id);
}

TEST(CsvCaptions, MayBeSeparatedBySemicolonsOrTabs) {
  EXPECT_THAT(prompts(parse("prompt;note\na, b;c\n")), ElementsAre("a, b"));
  EXPECT_THAT(prompts(parse("sep=;\r\nprompt;note\r\na;c\r\n", "c.csv")), ElementsAre("a"));
  EXPECT_THAT(prompts(parse("prompt\tnote\na, b\tc\n", "c.csv")), ElementsAre("a, b"));
  EXPECT_THAT(prompts(parse("prompt\n\"a, b\"\nc\n", "c.csv")), ElementsAre("a, b", "c"));
}

TEST(CsvCaptions, DifferFromTextsWithCommas) {
  const std::string text = "Prompt, in the style of ink\na boat, a lake, dusk\n";
  EXPECT_EQ(parse(text).size(), 2U);
  EXPECT_EQ(parse("text, on a sign\na, b, c\n").size(), 2U);
  EXPECT_THAT(prompts(parse("text,tag\na,b\n")), ElementsAre("a"));
}

TEST(CsvCaptions, HaveTheColumnThatIsAskedFor) {
  const std::string table = "prompt,Long Caption,seed\na,\"b, c\",3\n";
  EXPECT_THAT(prompts(parse(table, "c", "Long Caption")), ElementsAre("b, c"));
  EXPECT_THAT(prompts(parse(table, "c", "long_caption")), ElementsAre("b, c"));
  EXPECT_EQ(parse(table, "c", "Long Caption")[0].seed, 3U);
  EXPECT_THAT(message_of([&] { parse(table, "c", "short"); }),
              HasSubstr("c line 1: got no column 'short' among prompt"));
  EXPECT_THAT(prompts(parse("satz\nein Boot\n", "c", "satz")), ElementsAre("ein Boot"));
  EXPECT_THAT(message_of([] { parse("one\ntwo\n", "c", "x"); }), HasSubstr("got no column 'x' among one"));
}

TEST(TsvCaptions, MayHaveQuotes) {
  const Captions captions = parse(
      "\"Prompt\"\t\"Note\"\n\"a \"\"red\"\" boat\"\t\"x\"\n\"two\nlines\"\t\"y\"\n\"G O\" sprayed on a "
      "wall\tz\n\"open\tw\nlast\tv\n");
  EXPECT_THAT(prompts(captions),
              ElementsAre("a \"red\" boat", "two\nlines", "\"G O\" sprayed on a wall", "\"open", "last"));
}

TEST(Utf16Captions, AreRead) {
  for (const bool big_endian : {false, true}) {
    EXPECT_THAT(prompts(parse(utf16(u"prompt\tnote\r\né \U0001F600\tx\r\n", big_endian))),
                ElementsAre("é \U0001F600"));
    EXPECT_THAT(prompts(parse(utf16(u"a\nb", big_endian))), ElementsAre("a", "b"));
    EXPECT_THAT(prompts(parse(utf16(u"[\"a\"]", big_endian))), ElementsAre("a"));
  }
}

TEST(JsonCaptions, MayBeObjectsOfIds) {
  const Captions texts = parse("{\"7\": \"a cat\", \"x\": \"a dog\"}");
  EXPECT_THAT(prompts(texts), ElementsAre("a cat", "a dog"));
  EXPECT_EQ(texts[0].id, "7");
  EXPECT_EQ(texts[1].where, "c 'x'");
  const Captions records = parse(
      "{\n  \"000\": {\n    \"Prompt\": \"a\",\n    \"seed\": 5\n  },\n  \"001\": {\"prompt\": \"b\", "
      "\"id\": 9}\n}\n",
      "c.json");
  EXPECT_THAT(prompts(records), ElementsAre("a", "b"));
  EXPECT_EQ(records[0].id, "000");
  EXPECT_EQ(records[0].seed, 5U);
}

TEST(JsonCaptions, MayBeUnderAKey) {
  EXPECT_THAT(prompts(parse(R"({"prompts": ["a", "b"]})")), ElementsAre("a", "b"));
  const Captions data = parse(R"({"name": "set", "version": 2, "data": [{"caption": "a", "tag": 1}, "b"]})");
  EXPECT_THAT(prompts(data), ElementsAre("a", "b"));
  EXPECT_EQ(data[0].where, "c data[0]");
  EXPECT_EQ(data[0].fields.at("tag"), 1);
  EXPECT_THAT(prompts(parse(R"({"animals": ["a"], "places": ["b", "c"]})", "c", "places")),
              ElementsAre("b", "c"));
}

TEST(JsonCaptions, MayBeColumnsOfADataFrame) {
  const Captions lists = parse(R"({"prompt": ["a", "b"], "seed": [1, null], "tag": ["x", "y"]})");
  EXPECT_THAT(prompts(lists), ElementsAre("a", "b"));
  EXPECT_EQ(lists[0].seed, 1U);
  EXPECT_FALSE(lists[1].seed);
  const Captions objects = parse(R"({"Prompt": {"0": "a", "1": "b"}, "seed": {"0": 3.0, "1": 4.0}})");
  EXPECT_THAT(prompts(objects), ElementsAre("a", "b"));
  EXPECT_EQ(objects[1].seed, 4U);
}

TEST(JsonCaptions, MayBePrintedOverLines) {
  EXPECT_THAT(prompts(parse("{\n  \"prompt\": \"a\",\n  \"seed\": 1\n}\n")), ElementsAre("a"));
  const Captions two = parse("# two\n{\n  \"prompt\": \"a\"\n}\n{\n  \"prompt\": \"b\"\n}\n", "c.jsonl");
  EXPECT_THAT(prompts(two), ElementsAre("a", "b"));
  EXPECT_EQ(two[1].where, "c.jsonl line 5");
}

// The name of the file says that every line is JSON: what is none may be a download's error page.
TEST(JsonLines, MayBeTextsAndObjectsAndNothingElse) {
  const std::string lines = "# three\n\"a red boat\"\n{\"text\": \"b\"}\n\n\"c\"\n";
  for (const char* name : {"c.jsonl", "c.NDJSON"}) {
    EXPECT_THAT(prompts(parse(lines, name)), ElementsAre("a red boat", "b", "c")) << name;
    for (const std::string begin : {"a cat", "42", "null", "{red|blue} cat", "[a cat]"}) {
      const auto wrong = [&](const std::string& text) { return message_of([&] { parse(text, name); }); };
      EXPECT_THAT(wrong(begin + "\nx\n"), HasSubstr(std::string(name) + " line 1: ")) << begin;
      EXPECT_THAT(wrong("{\"text\": \"b\"}\n" + begin), HasSubstr(std::string(name) + " line 2: ")) << begin;
    }
  }
  EXPECT_THAT(message_of([] { parse("\"a\"\na cat\n", "c.jsonl"); }),
              HasSubstr("c.jsonl line 2: got a cat, expected a JSON object, or a caption between quotes"));
}

TEST(JsonCaptions, MayBeADataFrameInParts) {
  const Captions captions =
      parse(R"({"columns": ["prompt", "seed"], "index": [0, 1], "data": [["a", 3], ["b", 4]]})");
  EXPECT_THAT(prompts(captions), ElementsAre("a", "b"));
  EXPECT_EQ(captions[1].seed, 4U);
  EXPECT_THAT(message_of([] { parse(R"({"columns": ["prompt"], "data": [["a"], ["b", 4]]})"); }),
              HasSubstr("c data[1]: got [\"b\",4], expected an array of 1 values"));
  EXPECT_THAT(message_of([] { parse(R"({"prompt": ["a", "b"], "seed": [3]})"); }),
              HasSubstr("c: 'seed': got 1 values, expected 2 as in 'prompt'"));
  EXPECT_THAT(message_of([] { parse(R"({"1": "a", "2": 5})"); }), HasSubstr("got an object of '1', '2'"));
}

// Searches for the fields of a record would take hours here.
TEST(JsonCaptions, MayHaveManyFieldsAndRows) {
  constexpr int many = 100'000;
  std::string record = R"({"prompt": "a")", table = "prompt", cells = "a", frame;
  for (int i = 0; i < many; ++i) {
    const std::string number = std::to_string(i);
    record += ", \"k" + number + "\": 1";
    table += ",k" + number;
    cells += ",1";
    frame += (i > 0 ? ", \"" : "\"") + number + "\": \"b\"";
  }
  EXPECT_THAT(prompts(parse("[" + record + "}]")), ElementsAre("a"));
  EXPECT_THAT(prompts(parse(table + "\n" + cells + "\n")), ElementsAre("a"));
  EXPECT_EQ(parse(R"({"prompt": {)" + frame + R"(}, "tag": {)" + frame + "}}").size(), many);
  EXPECT_THAT(message_of([] { parse(R"({"columns": ["prompt", "Prompt"], "data": [["a", "b"]]})"); }),
              HasSubstr("got the field 'prompt' twice"));
}

TEST(JsonCaptions, HaveKeysInAnyCase) {
  const Captions captions =
      parse(R"([{"Caption": "a", "Negative Prompt": "fog", "CFG-Scale": 2, "Seed": 7.0}])");
  EXPECT_THAT(prompts(captions), ElementsAre("a"));
  EXPECT_EQ(captions[0].request.negative_prompt, "fog");
  EXPECT_EQ(captions[0].request.cfg_scale, 2.0F);
  EXPECT_EQ(captions[0].seed, 7U);
}

TEST(Lines, MayBeCommentsRecordsAndFlags) {
  const Captions captions = parse(
      "# comment\na cat\n  # comment\n{\"prompt\": \"a dog\"}\n{red|blue} boat\n--prompt \"a \\\"big\\\" "
      "fish\" "
      "--negative_prompt 'red fog' --seed 350 --cfg_scale 4\n--prompt a small bird --seed=3\na dash -- "
      "here\n");
  EXPECT_THAT(prompts(captions), ElementsAre("a cat", "a dog", "{red|blue} boat", "a \"big\" fish",
                                             "a small bird", "a dash -- here"));
  EXPECT_EQ(captions[3].request.negative_prompt, "red fog");
  EXPECT_EQ(captions[3].seed, 350U);
  EXPECT_EQ(captions[3].request.cfg_scale, 4.0F);
  EXPECT_EQ(captions[4].seed, 3U);
  EXPECT_THAT(prompts(parse_captions("# x\n--prompt \"a\"\n", "c", "text")), ElementsAre("--prompt \"a\""));
}

TEST(Lines, QuotesOfFlagsMayFollowAnEqualsSign) {
  const Captions captions =
      parse("--prompt='a red cat' --seed='3'\n--prompt=\"a dog\"\n--prompt=it's a fish's tail\n");
  EXPECT_THAT(prompts(captions), ElementsAre("a red cat", "a dog", "it's a fish's tail"));
  EXPECT_EQ(captions[0].seed, 3U);
}

TEST(Lines, CommentsMayPrecedeOtherContent) {
  EXPECT_THAT(prompts(parse("# my set\n\nprompt,seed\na,3\n# none\nb,4\n")), ElementsAre("a", "b"));
  EXPECT_THAT(prompts(parse("# my set\n[\"a\", \"b\"]\n")), ElementsAre("a", "b"));
}

TEST(Lines, InBracketsAreTexts) {
  EXPECT_THAT(prompts(parse("[1girl, solo]\n")), ElementsAre("[1girl, solo]"));
  EXPECT_THAT(prompts(parse("[null island]\n")), ElementsAre("[null island]"));
  for (const char* text : {"[[red]] boat", "[[red]]", "[[[old]] red] boat", "[ [1girl] ]",
                           "[{red|blue} boat]", "{{red}} boat", "[{{red}}]"})
    EXPECT_THAT(prompts(parse(std::string(text) + "\na dog\n")), ElementsAre(text, "a dog")) << text;
}

TEST(Lines, ThatAreNearlyJsonSayHowToWriteACaption) {
  for (const char* text : {"[1, 2 cats]", "{red} boat", "[\"a\" b", "a cat\n{\"x\" boat"})
    EXPECT_THAT(message_of([&] { parse(std::string(text) + "\n"); }),
                HasSubstr("; for a caption with this text use {\"prompt\": \"...\"}"))
        << text;
  EXPECT_EQ(message_of([&] { parse("[\"a\" b", "c.json"); }).find("this text"), std::string::npos);
}

TEST(LineStreams, AreTextsRecordsAndFlags) {
  const auto is_stream = captions::is_line_stream;
  for (const char* text : {"a cat\n", "{\"prompt\": \"a\"}\n", "{\"prompt\": }\n", "{a|b}\n",
                           "# x\n--prompt a\n", "{\"seed\": 3}\n"})
    EXPECT_EQ(is_stream(text), std::optional(true)) << text;
  for (const char* text :
       {"[\"a\",\n", "{\n", "prompt,seed\n", "\xEF\xBB\xBFprompt\tnote\n", "{\"1\": \"a cat\"}\n",
        "\xFF\xFE"
        "a"})
    EXPECT_EQ(is_stream(text), std::optional(false)) << text;
  for (const char* text : {"", "\n", "# x\n"}) EXPECT_EQ(is_stream(text), std::nullopt) << text;
}

}  // namespace
}  // namespace lamplighter
