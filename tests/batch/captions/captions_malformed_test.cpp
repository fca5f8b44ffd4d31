#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/batch/caption_sets.h"

namespace lamplighter {
namespace {

using testing::HasSubstr;

struct Malformed {
  std::string name, bytes, words;
};

class MalformedCaptions : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedCaptions, AreRefusedWithTheirPosition) {
  const bool is_csv = GetParam().words.rfind("c.csv", 0) == 0;
  const std::string message = message_of([&] { parse_captions(GetParam().bytes, is_csv ? "c.csv" : "c"); });
  EXPECT_EQ(message.rfind("c", 0), 0U) << message;
  EXPECT_THAT(message, HasSubstr(GetParam().words));
}

std::string annotations(const std::string& elements) {
  return "{\"annotations\": [" + elements + "]}";
}
const std::string kGood = R"({"image_id": 1, "id": 2, "caption": "x"})";

const std::vector<Malformed> kBytes = {
    {"Empty", "", "c: the file is empty"},
    {"Blank", " \r\n\t", "c: the file is empty"},
    {"MarkAlone", "\xEF\xBB\xBF", "c: the file is empty"},
    {"Utf16OddBytes",
     std::string("\xFF\xFE"
                 "a\0b",
                 5),
     "byte 5 of the file: invalid UTF-16, half a unit"},
    {"Utf16HalfAPair", std::string("\xFE\xFF\xD8\x3D\0a", 6),
     "byte 3 of the file: invalid UTF-16, an unpaired"},
    {"Utf16LowFirst", std::string("\xFF\xFE\x00\xDC", 4), "byte 3 of the file: invalid UTF-16, an unpaired"},
    {"Utf32", std::string("\xFF\xFE\0\0a\0\0\0", 8), "UTF-32"},
    {"Parquet", "PAR1\x15", "Parquet"},
    {"Utf16WithoutMark", std::string("a\0b\0", 4), "line 1, byte 2 of the file: got a zero byte (UTF-16?)"},
    {"ZeroByte", std::string("ab\nc\0d", 6), "line 2, byte 5 of the file: got a zero byte"},
    {"Overlong", "ok\nab\xC0\xAF", "line 2, byte 6 of the file: invalid UTF-8"},
    {"Surrogate", "\xED\xA0\x80", "line 1, byte 1 of the file: invalid UTF-8"},
    {"TornSequence", "[\"\xE2\x82\"]", "byte 3 of the file: invalid UTF-8"},
    {"TornAtTheEnd", "a\xF0\x9F\x98", "byte 2 of the file: invalid UTF-8"},
    {"Gzip", "\x1F\x8B\x08", "gzip"},
    {"Zip", "PK\x03\x04", "zip archive"},
    {"LfsPointer", "version https://git-lfs.github.com/spec/v1\noid sha256:7d\nsize 3", "git-lfs pointer"},
    {"NoText", "a\n" + std::string(32769, 'x'), "c line 2: got 32769 bytes, expected at most 32768"},
};

const std::vector<Malformed> kJson = {
    {"NoCaptions", "[]", "c: no captions found"},
    {"NoAnnotations", R"({"annotations": []})", "c: no captions found"},
    {"ImagesAlone", R"({"images": []})", "annotations is missing"},
    {"AnnotationsOfAnotherKind", R"({"annotations": {}})", "annotations: got {}, expected an array"},
    {"TrailingComma", "[\"a\",]", "invalid JSON: parse error at line 1, column 6"},
    {"Truncated", R"({"annotations": [{"image_id": 1, "caption": "x)", "invalid JSON: parse error at line 1"},
    {"TruncatedLine", "{\"prompt\": \"a\"}\n{\"prompt\": ", "c line 2: invalid JSON"},
    {"NotANumber", "[NaN]", "invalid JSON: parse error at line 1, column 2"},
    {"NotANumberInALine", R"({"prompt": "a", "x": NaN})", "c line 1: invalid JSON"},
    {"HugeNumber", R"([{"prompt": "a", "x": 1e400}])", "invalid JSON: byte 27: number overflow"},
    {"SurrogateEscape", R"(["\ud800"])", "invalid JSON: parse error at line 1"},
    {"DeepArrays", std::string(100000, '['), "c: invalid JSON: [0][0]"},
    {"DeepObjects",
     [] {
       std::string text;
       for (int i = 0; i < 100000; ++i) text += "{\"a\":";
       return text;
     }(),
     "nested more than 200 deep"},
    {"DuplicateKey", annotations(kGood + R"(, {"caption": "x", "caption": "y"})"),
     "annotations[1]: duplicate key \"caption\""},
    {"DuplicateKeyInALine", "{\"prompt\": \"a\"}\n{\"prompt\": \"a\", \"prompt\": \"b\"}",
     "c line 2: invalid JSON: "},
    {"NumberForText", "[\"a\", 1]", "c [1]: got 1, expected a text or an object"},
    {"NullForText", "[null]", "c [0]: got null"},
    {"ArrayForText", "[[\"a\"]]", "c [0]: got [\"a\"]"},
    {"TextForAnnotation", R"({"annotations": ["a"]})", "c annotations[0]: got \"a\", expected a JSON object"},
    {"NoPrompt", R"([{"tag": 1}])", "c [0]: got no prompt, expected prompt, caption, text or class"},
    {"NoCaption", annotations(R"({"image_id": 1, "id": 2, "bbox": []})"),
     "annotations[0]: caption is missing"},
    {"NullCaption", annotations(R"({"image_id": 1, "caption": null})"),
     "caption: got null, expected a string"},
    {"NumberCaption", "{\"caption\": 3}", "c line 1: caption: got 3, expected a string"},
    {"ArrayCaption", "[{\"text\": [\"a\"]}]", "c [0]: text: got [\"a\"], expected a string"},
    {"EmptyCaption", annotations(kGood + R"(, {"image_id": 1, "caption": ""})"),
     "c annotations[1]: the prompt is empty"},
    {"BlankCaption", "[\"a\", \" \\n\"]", "c [1]: the prompt is empty"},
    {"ZeroByteInCaption", "[\"a\\u0000b\"]", "c [0]: got a zero byte"},
    {"LongCaption", "[\"" + std::string(1 << 20, 'x') + "\"]", "c [0]: got 1048576 bytes"},
    {"FieldOfAnotherKind", R"({"prompt": "a", "cfg_scale": "b"})", "c line 1: cfg_scale: got \"b\""},
    {"TextSeed", R"({"prompt": "a", "seed": "4 2"})", "c line 1: seed: got \"4 2\", expected an integer"},
    {"EmptySeed", R"({"prompt": "a", "seed": ""})", "c line 1: seed: got \"\", expected an integer"},
    {"TextOfANegativeSeed", R"({"prompt": "a", "seed": "-1"})", "c line 1: seed: got -1"},
    {"NegativeSeed", R"({"prompt": "a", "seed": -1})", "c line 1: seed: got -1"},
};

const std::vector<Malformed> kObjects = {
    {"SeedBesideTexts", R"({"prompts": ["a", "b"], "seed": 7})",
     "c: 'seed': got 7 beside 'prompts', expected it in the record of each caption"},
    {"ScaleBesideRecords", R"({"data": [{"prompt": "a"}], "CFG Scale": 3})",
     "c: 'CFG Scale': got 3 beside 'data'"},
    {"SeedsBesideRecords", R"({"prompts": [{"text": "a"}], "seed": [1]})", "c: 'seed': got [1] beside"},
    {"NegativeBesideColumn", R"({"prompt": {"0": "a"}, "negative_prompt": "x"})",
     "c: 'negative_prompt': got \"x\" beside 'prompt'"},
    {"SeveralArrays", R"({"animals": ["a cat"], "places": ["a lake"]})",
     "c line 1: got several arrays of captions, 'animals', 'places'; --column names"},
    {"NumbersById", R"({"a": 1, "b": 2})", "c line 1: got an object of 'a', 'b', expected prompt"},
    {"RecordWithoutPrompt", "{\"a\": {\"prompt\": \"x\"},\n\"b\": {\"tag\": 1}}", "c 'b': got no prompt"},
    {"BlankId", "{\" \": \"a cat\", \"b\": \"a dog\"}", "c ' ': id: got \" \", expected a text"},
    {"FieldTwice", R"([{"Prompt": "a", "prompt": "b"}])", "c [0]: got the field 'prompt' twice"},
    {"FlagBehindACaption", "a cat --ar 16:9", "c line 1: got '--ar' behind a caption, expected flags alone"},
    {"FlagWithoutValue", "--prompt \"a cat\" --seed", "c line 1: --seed: got no value"},
    {"UnknownFlag", "--prompt \"a cat\" --steps 20", "c line 1: unknown field steps, expected one of"},
    {"FlagTwice", "--prompt a --seed 1 --seed 2", "c line 1: got --seed twice"},
    {"OpenQuoteOfAFlag", "--prompt \"a cat --seed 1", "c line 1: got a quote \" that is not closed"},
    {"FlagsWithoutPrompt", "--seed 3", "c line 1: got no prompt"},
    {"FractionSeed", R"([{"prompt": "a", "seed": 4.5}])", "c [0]: seed: got 4.5, expected an integer"},
};

const std::vector<Malformed> kIds = {
    {"NoImage", annotations(R"({"id": 1, "caption": "x"})"), "c annotations[0]: image_id is missing"},
    {"NegativeImage", annotations(R"({"image_id": -1, "caption": "x"})"),
     "image_id: got -1, expected an integer of 0"},
    {"NegativeText", annotations(R"({"image_id": "-1", "caption": "x"})"), "image_id: got \"-1\""},
    {"HugeImage", R"([{"image_id": 9223372036854775808, "text": "x"}])", "image_id: got 9223372036854775808"},
    {"HugerImage", R"([{"image_id": 99999999999999999999, "text": "x"}])", "image_id: got 1e+20"},
    {"HugeText", R"([{"image_id": "9223372036854775808", "text": "x"}])", "image_id: got \"92233"},
    {"FractionImage", R"([{"image_id": 1.0, "text": "x"}])", "image_id: got 1.0"},
    {"NullImage", R"([{"image_id": null, "text": "x"}])", "image_id: got null"},
    {"EmptyImage", R"([{"image_id": "", "text": "x"}])", "image_id: got \"\""},
    {"NameImage", R"([{"image_id": "12.jpg", "text": "x"}])", "image_id: got \"12.jpg\""},
    {"NameId", annotations(R"({"image_id": 1, "id": "x", "caption": "x"})"),
     "c annotations[0]: id: got \"x\""},
    {"BooleanId", R"([{"id": true, "text": "x"}])", "c [0]: id: got true"},
    {"EmptyId", R"([{"id": "", "text": "x"}])", "c [0]: id: got \"\", expected a text or an integer"},
    {"NegativeId", R"([{"id": -3, "text": "x"}])", "c [0]: id: got -3"},
    {"AnnotationTwice", annotations(kGood + "," + R"({"image_id": 5, "id": 9, "caption": "y"},)" + kGood),
     "c annotations[2]: id: got \"2\", which c annotations[0] has"},
    {"IdTwice", R"([{"id": 7, "text": "x"}, "y", {"id": "7", "text": "x"}])",
     "c [2]: id: got \"7\", which c [0] has"},
    {"IdTwiceInATable", "id\tprompt\na\tx\nb\ty\na\tz", "c line 4: id: got \"a\", which c line 2 has"},
};

const std::vector<Malformed> kTables = {
    {"CsvWithoutNames", "a boat,sea\na tree,land\n",
     "c.csv line 1: got no column of prompts among a boat, sea"},
    {"OpenQuote", "prompt,note\n\"a,b\nc,d", "c.csv line 2: got a quote that no quote ends"},
    {"QuoteInACell", "prompt,note\n\"a\" b,c", "c.csv line 2: got a quote that no quote ends"},
    {"CsvColumns", "prompt,note\n\"a\nb\",c\nd,e,f", "c.csv line 4: got 3 columns, expected 2"},
    {"HeadAlone", "Prompt\tNote\n", "c: no captions found"},
    {"MoreColumns", "Prompt\tNote\na\tb\nc\td\te", "c line 3: got 3 columns, expected 2"},
    {"ColumnTwice", "Prompt\tprompt\na\tb", "c line 1: duplicate column \"prompt\""},
    {"EmptyPrompt", "Prompt\tNote\na\tb\n\td", "c line 3: the prompt is empty"},
    {"MissingPrompt", "id\tPrompt\n1\ta\n2", "c line 3: got no prompt"},
    {"WordForSeed", "Prompt\tseed\na\tx", "c line 2: seed: got \"x\""},
    {"WordForImage", "prompt\timage_id\na\tx", "c line 2: image_id: got \"x\""},
};

std::string name_of(const testing::TestParamInfo<Malformed>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Bytes, MalformedCaptions, testing::ValuesIn(kBytes), name_of);
INSTANTIATE_TEST_SUITE_P(Json, MalformedCaptions, testing::ValuesIn(kJson), name_of);
INSTANTIATE_TEST_SUITE_P(Objects, MalformedCaptions, testing::ValuesIn(kObjects), name_of);
INSTANTIATE_TEST_SUITE_P(Ids, MalformedCaptions, testing::ValuesIn(kIds), name_of);
INSTANTIATE_TEST_SUITE_P(Tables, MalformedCaptions, testing::ValuesIn(kTables), name_of);

TEST(Captions, ATableNeedsItsHead) {
  EXPECT_THAT(message_of([] { parse_captions("a\tb\n", "c", "tsv"); }), HasSubstr("c line 1: got no column"));
}

TEST(Captions, FileNamesDecideTheFormat) {
  const auto parse = [](const char* name) { parse_captions("too large to upload", name); };
  EXPECT_THAT(message_of([&] { parse("c.json"); }), HasSubstr("c.json: invalid JSON"));
  EXPECT_THAT(message_of([&] { parse("c.jsonl"); }), HasSubstr("c.jsonl line 1: got too large"));
  EXPECT_THAT(message_of([&] { parse("c.tsv"); }), HasSubstr("c.tsv line 1: got no column"));
}

TEST(Captions, TruncatedFilesNeverCrash) {
  for (const std::string_view whole :
       {kCoco, std::string_view("[\"a\", {\"id\": \"7\", \"text\": \"\\u00fc\"}]")}) {
    for (std::size_t size = 1; size < whole.size(); ++size)
      message_of([&] { parse_captions(whole.substr(0, size), "c"); });
  }
}

}  // namespace
}  // namespace lamplighter
