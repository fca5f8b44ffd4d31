#include <charconv>
#include <utility>

#include "base/lines.h"
#include "base/utf8.h"
#include "batch/captions/formats.h"
#include "pipeline/requests/request_fields.h"

namespace lamplighter::captions {
namespace {

// An integer from 0, or its digits.
std::int64_t read_number(JsonReader& record, const char* key) {
  const Json& value = record.value(key);
  const char* const expected = "an integer of 0 to 2^63 - 1";
  if (value.is_string()) {
    const auto& digits = value.get_ref<const std::string&>();
    const char* const end = digits.data() + digits.size();
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    if (error != std::errc() || stop != end || digits[0] == '-') record.reject(key, expected);
    return number;
  }
  const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 == 0;
  if (!fits) record.reject(key, expected);
  return value.get<std::int64_t>();
}

// An integer from 0, or any text.
std::string read_id(JsonReader& record, const char* key) {
  const Json& value = record.value(key);
  if (!value.is_string()) return std::to_string(read_number(record, key));
  std::string id = value.get<std::string>();
  if (is_blank(id) || id.find('\0') != std::string::npos) record.reject(key, "a text or an integer");
  return id;
}

std::string prompt_key(const JsonReader& record) {
  for (const char* key : {"prompt", "caption", "text"}) {
    if (record.has(key)) return key;
  }
  return "";
}

Caption read_annotation(const Json& annotation, std::string where) {
  Caption caption;
  JsonReader record(annotation, where, ExitCode::input);
  caption.image_id = read_number(record, "image_id");
  if (record.has("id")) caption.id = std::to_string(read_number(record, "id"));
  caption.request.prompt = record.text("caption");
  check_prompt(caption.request.prompt, where);
  caption.where = std::move(where);
  return caption;
}

}  // namespace

Caption read_record(const Json& json, std::string where) {
  Caption caption;
  JsonReader record(json, where, ExitCode::input);
  const std::string key = prompt_key(record);
  if (key.empty() && !record.has("class"))
    record.fail("got no prompt, expected prompt, caption, text or class");
  caption.seed = read_request_fields(record, caption.request, key);
  if (!key.empty()) check_prompt(caption.request.prompt, where);
  for (const char* name : {"id", "prompt_id", "item_id"}) {
    if (record.has(name) && caption.id.empty()) caption.id = read_id(record, name);
  }
  if (record.has("image_id")) caption.image_id = read_number(record, "image_id");
  caption.where = std::move(where);
  return caption;
}

Caption read_bare_text(std::string text, std::string where) {
  check_prompt(text, where);
  Caption caption;
  caption.request.prompt = std::move(text);
  caption.where = std::move(where);
  return caption;
}

std::vector<Caption> read_coco(std::string_view text, const std::string& name) {
  Json file = parse_json(text, name, ExitCode::input);
  JsonReader reader(file, name, ExitCode::input);
  if (!reader.value("annotations").is_array()) reader.reject("annotations", "an array");
  const Json& annotations = file["annotations"];
  std::vector<Caption> captions;
  captions.reserve(annotations.size());
  for (const Json& annotation : annotations) {
    captions.push_back(
        read_annotation(annotation, name + " annotations[" + std::to_string(captions.size()) + "]"));
  }
  return captions;
}

std::vector<Caption> read_array(std::string_view text, const std::string& name) {
  Json file = parse_json(text, name, ExitCode::input);
  if (!file.is_array()) throw Error(ExitCode::input, name + ": expected a JSON array");
  std::vector<Caption> captions;
  captions.reserve(file.size());
  for (Json& element : file) {
    std::string where = name + " [" + std::to_string(captions.size()) + "]";
    if (element.is_string()) {
      captions.push_back(read_bare_text(std::move(element.get_ref<std::string&>()), std::move(where)));
    } else {
      if (!element.is_object())
        throw Error(ExitCode::input,
                    where + ": got " + shorten(element.dump(), 60) + ", expected a text or an object");
      captions.push_back(read_record(element, std::move(where)));
      captions.back().fields = std::move(element);
    }
  }
  return captions;
}

std::vector<Caption> read_json_lines(std::string_view text, const std::string& name) {
  std::vector<Caption> captions;
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    std::string where = name + " line " + std::to_string(number);
    Json record = parse_json(line, where, ExitCode::input);
    captions.push_back(read_record(record, std::move(where)));
    captions.back().fields = std::move(record);
  });
  return captions;
}

}  // namespace lamplighter::captions
