#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/error_of.h"

namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(const std::function<void()>& action) {
  return error_of(ExitCode::bundle, action);
}

Json parse(std::string_view text) {
  return parse_json(text, "m.json", ExitCode::bundle);
}

TEST(ParseJson, PointsAtTheMistake) {
  EXPECT_THAT(message_of([] { parse("{\"a\": 1,\n \"b\" 2}"); }),
              HasSubstr("m.json: invalid JSON: parse error at line 2"));
  EXPECT_THAT(message_of([] { parse(""); }), HasSubstr("invalid JSON"));
  EXPECT_THAT(message_of([] { parse("\"\xff\""); }), HasSubstr("invalid JSON"));
  EXPECT_THAT(message_of([] { parse("[1] 2"); }), HasSubstr("invalid JSON"));
}

TEST(ParseJson, ReadsObjectsOfManyKeys) {
  constexpr int keys = 300'000;  // a quadratic check would take minutes
  std::string text = "{";
  for (int i = 0; i < keys; ++i)
    text += "\"k" + std::to_string(i) + "\": {\"k1\": " + std::to_string(i) + "}, ";
  EXPECT_EQ(parse(text + "\"last\": 1}").size(), std::size_t{keys} + 1);
  EXPECT_THAT(message_of([&] { parse(text + "\"k77\": 1}"); }), HasSubstr("duplicate key \"k77\""));
}

TEST(ParseJson, RefusesDeepNesting) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(parse(nested(200)).dump(), nested(200));
  EXPECT_THAT(message_of([&] { parse(nested(201)); }), HasSubstr("nested more than 200 deep"));
  EXPECT_THAT(message_of([] { parse(std::string(200000, '[')); }), HasSubstr("invalid JSON: [0][0]"));
}

TEST(ParseJson, RefusesDuplicateKeys) {
  EXPECT_THAT(message_of([] { parse(R"({"a": 1, "l": [0, {"x": [], "b\n": {"c": 1, "c": 2}}]})"); }),
              HasSubstr("m.json: invalid JSON: l[1].b : duplicate key \"c\""));
  EXPECT_EQ(parse(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})").size(), 2U);
}

TEST(ParseJson, KeepsValuesAndTheirOrder) {
  const std::string text =
      R"({"z":[1,-2,0.5,18446744073709551615,null,true,"\u00fc",{},[]],"a":{"y":false}})";
  EXPECT_EQ(parse(text), Json::parse(text));
  EXPECT_EQ(parse(text).dump(), Json::parse(text).dump());
  EXPECT_EQ(parse(" 7 "), 7);
  EXPECT_THAT(message_of([] { parse("[1e400]"); }), HasSubstr("byte 6: number overflow"));
}

TEST(JsonReader, ReadsFields) {
  const Json json = parse(R"({"t":"x","i":-3,"u":18446744073709551615,"n":0.5,"b":true,
                              "l":[1,2],"w":["a"],"o":{"k":1},"r":[{"k":2},{"k":3}]})");
  JsonReader reader(json, "m.json", ExitCode::bundle);
  EXPECT_EQ(reader.text("t"), "x");
  EXPECT_EQ(reader.integer("i"), -3);
  EXPECT_EQ(reader.unsigned_integer("u"), 18446744073709551615U);
  EXPECT_EQ(reader.number("n"), 0.5);
  EXPECT_TRUE(reader.boolean("b"));
  EXPECT_THAT(reader.integers("l"), ElementsAre(1, 2));
  EXPECT_THAT(reader.texts("w"), ElementsAre("a"));
  EXPECT_EQ(reader.object("o").integer("k"), 1);
  EXPECT_EQ(reader.objects("r")[1].integer("k"), 3);
  EXPECT_TRUE(reader.has("t"));
  EXPECT_FALSE(reader.has("z"));
  reader.finish();
}

TEST(JsonReader, NamesPositionFieldAndExpectation) {
  const Json json =
      parse(R"({"grids":[{"width":"256"}],"big":18446744073709551615,"list":[1,"a"],"m":{"a":1}})");
  JsonReader reader(json, "m.json", ExitCode::bundle);
  EXPECT_EQ(message_of([&] { reader.objects("grids")[0].integer("width", 1); }),
            "m.json: grids[0].width: got \"256\", expected an integer >= 1");
  EXPECT_EQ(message_of([&] { reader.text("none"); }), "m.json: none is missing");
  EXPECT_THAT(message_of([&] { reader.integer("big"); }), HasSubstr("expected an integer"));
  EXPECT_THAT(message_of([&] { reader.integers("list"); }), HasSubstr("an array of integers"));
  EXPECT_THAT(message_of([&] { reader.texts("list"); }), HasSubstr("an array of strings"));
  EXPECT_THAT(message_of([&] { reader.members("m"); }),
              HasSubstr("m.json: m.a: got 1, expected a JSON object"));
  EXPECT_THAT(message_of([&] { reader.choice("none", {"a"}); }), HasSubstr("missing"));
}

TEST(JsonReader, ReportsUnknownFields) {
  const Json json = parse(R"({"a":1,"b":{"c":2}})");
  JsonReader reader(json, "m.json", ExitCode::bundle);
  reader.integer("a");
  EXPECT_EQ(message_of([&] { reader.finish(); }), "m.json: unknown field b, expected one of a");
  const JsonReader inner = reader.object("b");
  reader.finish();
  EXPECT_EQ(message_of([&] { inner.finish(); }), "m.json: unknown field b.c");
}

TEST(JsonReader, BoundsIntegers) {
  const Json json = parse(R"({"a":5,"f":5.5})");
  JsonReader reader(json, "m.json", ExitCode::bundle);
  EXPECT_EQ(reader.integer("a", 5, 5), 5);
  EXPECT_THAT(message_of([&] { reader.integer("a", 6); }), HasSubstr(">= 6"));
  EXPECT_THAT(message_of([&] { reader.integer("a", 1, 4); }), HasSubstr(">= 1 and <= 4"));
  EXPECT_THAT(message_of([&] { reader.integer("f"); }), HasSubstr("got 5.5"));
}

}  // namespace
}  // namespace lamplighter
