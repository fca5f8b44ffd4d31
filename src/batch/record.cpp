#include "batch/record.h"

#include <string_view>

namespace lamplighter {
namespace {

constexpr int kMaxSide = 1 << 20;  // pixels
constexpr std::string_view kImages = "images/";

void write_image(const Record& record, Json& json) {
  json["file"] = record.file;
  json["sha256"] = record.sha256;
  json["bytes"] = record.bytes;
  json["width"] = record.width;
  json["height"] = record.height;
  json["rows"] = record.rows;
  json["columns"] = record.columns;
  if (!record.cut.empty()) json["cut"] = record.cut;
  json["method"] = record.method;
  json["tokens"] = record.tokens;
  json["target_passes"] = record.target_passes;
  json["step_compression"] = record.step_compression();
  json["committed"] = record.committed;
  if (!record.order.empty()) json["order"] = record.order;
  json["batch"] = record.batch;
  json["ms"] = {{"text", record.text_ms},
                {"prefill", record.prefill_ms},
                {"decode", record.decode_ms},
                {"image", record.image_ms}};
}

void read_image(JsonReader& reader, Record& record) {
  const auto side = [&](const char* key) { return static_cast<int>(reader.integer(key, 1, kMaxSide)); };
  record.file = reader.text("file");
  const bool is_image = record.file.rfind(kImages, 0) == 0 && record.file.size() > kImages.size() &&
                        record.file.find('/', kImages.size()) == std::string::npos;
  if (!is_image) reader.reject("file", "a file of images/");
  record.sha256 = reader.text("sha256");
  record.bytes = reader.unsigned_integer("bytes");
  record.width = side("width");
  record.height = side("height");
  record.rows = side("rows");
  record.columns = side("columns");
  if (reader.has("cut")) record.cut = reader.text("cut");
  record.method = reader.text("method");
  record.tokens = reader.integer("tokens", 0);
  record.target_passes = reader.integer("target_passes", 0);
  record.committed = reader.integers("committed");
  if (reader.has("order")) record.order = reader.integers("order");
  record.batch = side("batch");
  JsonReader ms = reader.object("ms");
  record.text_ms = ms.number("text");
  record.prefill_ms = ms.number("prefill");
  record.decode_ms = ms.number("decode");
  record.image_ms = ms.number("image");
}

}  // namespace

Json to_json(const Record& record) {
  Json json;
  json["index"] = record.index;
  json["repeat"] = record.repeat;
  if (!record.id.empty()) json["id"] = record.id;
  if (record.image_id) json["image_id"] = *record.image_id;
  if (record.class_id) {
    json["class"] = *record.class_id;
  } else {
    json["caption"] = record.caption;
  }
  if (!record.fields.is_null()) json["fields"] = record.fields;
  json["seed"] = record.seed;
  json["configuration"] = record.configuration;
  json["status"] = record.is_failed() ? "failed" : "ok";
  if (record.is_failed()) {
    json["error"] = record.error;
  } else {
    write_image(record, json);
  }
  return json;
}

Record parse_record(const Json& json, const std::string& where) {
  JsonReader reader(json, where, ExitCode::input);
  Record record;
  record.index = static_cast<std::size_t>(reader.unsigned_integer("index"));
  record.repeat = static_cast<std::size_t>(reader.unsigned_integer("repeat"));
  if (reader.has("id")) record.id = reader.text("id");
  if (reader.has("image_id")) record.image_id = reader.integer("image_id");
  if (reader.has("class")) {
    record.class_id = reader.integer("class", 0);
  } else {
    record.caption = reader.text("caption");
  }
  if (reader.has("fields")) record.fields = reader.value("fields");
  record.seed = reader.unsigned_integer("seed");
  record.configuration = static_cast<int>(reader.integer("configuration", 0, 1 << 20));
  if (reader.choice("status", {"ok", "failed"}) == "failed") {
    record.error = reader.text("error");
    if (record.error.empty()) reader.reject("error", "a reason");
  } else {
    read_image(reader, record);
  }
  return record;
}

}  // namespace lamplighter
