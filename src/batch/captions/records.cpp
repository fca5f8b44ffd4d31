#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/message.h"
#include "base/utf8.h"
#include "batch/captions/formats.h"
#include "pipeline/metadata/request_fields.h"

namespace lamplighter::captions {
namespace {

// Names of prompts in caption sets; the first one found counts.
constexpr std::array<std::string_view, 10> kPromptNames{"prompt",    "caption",  "text",      "prompts",
                                                        "captions",  "texts",    "prompt_en", "caption_en",
                                                        "prompt_cn", "prompt_zh"};

// The field of `column`: its exact name first, then any spelling of it.
std::string find_column(const Json& fields, const std::string& column) {
  if (fields.contains(column)) return field_name(column);
  for (const auto& member : fields.items()) {
    if (field_name(member.key()) == field_name(column)) return field_name(column);
  }
  return "";
}

}  // namespace

std::string list_names(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + excerpt_of(name);
  return names.empty() ? "none" : shorten(list, 200);
}

std::string find_prompt_name(const std::vector<std::string>& names) {
  for (const std::string_view name : kPromptNames) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return std::string(name);
  }
  return "";
}

Json value_of(const std::string& name, const std::string& cell) {
  constexpr std::array<std::string_view, 6> kTexts{"negative_prompt", "id",      "image_id",
                                                   "prompt_id",       "item_id", "output"};
  const auto is_text = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_text(kPromptNames) || is_text(kTexts)) return cell;
  Json number = number_of(cell);
  return number.is_null() ? Json(cell) : number;
}

Entry make_record(Entry::Form form, std::string where, Json fields, const std::string& column) {
  Entry entry;
  entry.form = form;
  entry.where = std::move(where);
  entry.record = Json::object();
  auto& members = entry.record.get_ref<Json::object_t&>();  // its search is linear, a hostile record long
  std::unordered_set<std::string> known;
  std::vector<std::string> names;
  for (const auto& [key, value] : fields.items()) {
    names.push_back(field_name(key));
    if (!known.insert(names.back()).second)
      return make_failure(entry.where, "got the field " + quote(names.back()) + " twice");
    members.emplace_back(names.back(), value);
  }
  entry.prompt_key = column.empty() ? find_prompt_name(names) : find_column(fields, column);
  if (!column.empty() && entry.prompt_key.empty())
    return make_failure(
        entry.where, "got no field " + quote(column) + ", which --column names, among " + list_names(names));
  if (form == Entry::Form::data && !entry.prompt_key.empty()) {
    // Data sets have classes and sizes of their own.
    entry.record.erase("class");
    if (entry.record.contains("image_id")) {
      entry.record.erase("width");
      entry.record.erase("height");
    }
  }
  normalize_numbers(entry.record);
  entry.fields = std::move(fields);
  return entry;
}

Entry make_text(std::string where, std::string text) {
  Entry entry;
  entry.where = std::move(where);
  entry.text = std::move(text);
  return entry;
}

Entry make_failure(std::string where, const std::string& message) {
  Entry entry;
  entry.failure = Error(ExitCode::input, where + ": " + message);
  entry.where = std::move(where);
  return entry;
}

}  // namespace lamplighter::captions
