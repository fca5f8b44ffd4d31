#include "batch/record.h"

#include <gmock/gmock.h>

#include "tests/batch/caption_sets.h"
#include "tests/batch/records.h"

namespace lamplighter {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string rejected(const Json& json) {
  return message_of([&] { parse_record(json, "manifest.jsonl line 7"); });
}
std::string rejected(const std::string& key, const Json& value) {
  Json json = to_json(generated_record(3));
  json[key] = value;
  return rejected(json);
}

TEST(Record, ComesBackAsItWasWritten) {
  Record record = generated_record(3, 1);
  record.id = "id";
  record.image_id = 139;
  record.fields = {{"tag", "x"}};
  record.seed = ~std::uint64_t{0};
  record.bytes = std::uint64_t{1} << 40;
  record.configuration = 2;
  record.text_ms = 1.5;
  record.image_ms = 0.25;
  record.batch = 4;
  record.order = {0, 2, 1, 3};
  const Json json = to_json(record);
  EXPECT_EQ(to_json(parse_record(json, "")), json);
  EXPECT_EQ(json["status"], "ok");
  EXPECT_EQ(json["ms"]["text"], 1.5);
  EXPECT_EQ(json["seed"], record.seed);
  EXPECT_DOUBLE_EQ(json["step_compression"], 4.0 / 3.0);

  Record of_class = generated_record(1);
  of_class.class_id = 207;
  EXPECT_FALSE(to_json(of_class).contains("caption"));
  EXPECT_EQ(parse_record(to_json(of_class), "").class_id, 207);

  const Json failed = to_json(failed_record(5));
  EXPECT_FALSE(failed.contains("file"));
  EXPECT_TRUE(parse_record(failed, "").is_failed());
  EXPECT_EQ(to_json(parse_record(failed, "")), failed);
}

TEST(Record, FileLiesAmongTheImages) {
  for (const char* file : {"", "images/", "x.png", "/etc/passwd", "../images/x.png", "images/../run.json",
                           "images/a/b.png", "Images/x.png"})
    EXPECT_THAT(rejected("file", file), AllOf(HasSubstr("line 7"), HasSubstr("file"))) << file;
}

TEST(Record, FieldsHaveTheirTypes) {
  for (const char* key : {"index", "repeat", "seed", "bytes"}) {
    for (const Json& value : {Json(-1), Json("3"), Json(1.5), Json(), Json::array()})
      EXPECT_THAT(rejected(key, value), AllOf(HasSubstr("line 7"), HasSubstr(key))) << value;
  }
  for (const char* key : {"caption", "status", "sha256", "method", "id"})
    EXPECT_THAT(rejected(key, 3), HasSubstr(key));
  for (const char* key : {"width", "rows", "batch"}) EXPECT_THAT(rejected(key, 0), HasSubstr(key));
  EXPECT_THAT(rejected("committed", "1"), HasSubstr("committed"));
  EXPECT_THAT(rejected("ms", 3), HasSubstr("ms"));
  EXPECT_THAT(rejected("configuration", -1), HasSubstr("configuration"));
  EXPECT_THAT(rejected("status", "done"), HasSubstr("status"));
  EXPECT_THAT(rejected(Json::array()), HasSubstr("line 7"));
  Json json = to_json(generated_record(3));
  json.erase("sha256");
  EXPECT_THAT(rejected(json), HasSubstr("sha256"));
  Json reasonless = to_json(failed_record(3));
  reasonless["error"] = "";
  EXPECT_THAT(rejected(reasonless), HasSubstr("error"));
}

}  // namespace
}  // namespace lamplighter
