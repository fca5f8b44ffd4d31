#include "pipeline/metadata/request_fields.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/invisible.h"
#include "base/lines.h"
#include "lamplighter/error.h"
#include "text/cleaning.h"

namespace lamplighter {
namespace {

struct NumberField {
  const char* name;
  bool is_whole;
};
constexpr NumberField kNumbers[] = {{"class", true},        {"seed", true},   {"cfg_scale", false},
                                    {"temperature", false}, {"top_p", false}, {"top_k", true},
                                    {"cfg_interval", true}, {"width", true},  {"height", true},
                                    {"batch_count", true}};

}  // namespace

void check_prompt(const std::string& prompt, const std::string& where) {
  check_caption(prompt, where);
  if (prompt.find('\0') != std::string::npos) throw Error(ExitCode::input, where + ": got a zero byte");
  if (is_blank(prompt)) throw Error(ExitCode::input, where + ": the prompt is empty");
}

std::optional<std::uint64_t> read_request_fields(JsonReader& record, Request& request,
                                                 const std::string& prompt_key) {
  const auto side = [&](const char* key) { return static_cast<int>(record.integer(key, 1, 1 << 20)); };
  const auto number = [&](const char* key) { return record.fp32(key); };
  std::optional<std::uint64_t> seed;
  if (record.has(prompt_key)) request.prompt = record.text(prompt_key);
  if (record.has("negative_prompt")) request.negative_prompt = record.text("negative_prompt");
  if (record.has("class")) request.class_id = record.integer("class", 0);
  if (record.has("seed")) seed = record.unsigned_integer("seed");
  if (record.has("cfg_scale")) request.cfg_scale = number("cfg_scale");
  if (record.has("temperature")) request.temperature = number("temperature");
  if (record.has("top_p")) request.top_p = number("top_p");
  if (record.has("top_k")) request.top_k = record.integer("top_k");
  if (record.has("cfg_interval")) request.cfg_interval = record.integer("cfg_interval");
  if (record.has("width")) request.width = side("width");
  if (record.has("height")) request.height = side("height");
  return seed;
}

std::string field_name(std::string_view spelled) {
  const auto is_gap = [](char c) { return c == ' ' || c == '\t' || c == '-'; };
  const std::string visible = without_invisible(spelled);
  std::string_view text = visible;
  while (!text.empty() && is_gap(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_gap(text.back())) text.remove_suffix(1);
  std::string name(text);
  for (char& c : name) c = is_gap(c) ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

void make_whole(Json& value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: whole numbers below it are exact
  if (!value.is_number_float()) return;
  const double number = value.get<double>();
  if (std::trunc(number) != number || std::abs(number) >= kExact) return;
  const auto whole = static_cast<std::int64_t>(number);
  value = whole < 0 ? Json(whole) : Json(static_cast<std::uint64_t>(whole));
}

Json number_of(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  const bool may_be =
      begin != std::string::npos && (text[begin] == '-' || (text[begin] >= '0' && text[begin] <= '9'));
  Json number = may_be ? Json::parse(text, nullptr, false) : Json();
  return number.is_number() ? number : Json();
}

void normalize_numbers(Json& record) {
  for (const NumberField& field : kNumbers) {
    const auto found = record.find(field.name);
    if (found == record.end()) continue;
    if (found->is_null()) {
      record.erase(found);
      continue;
    }
    if (found->is_string()) {
      Json number = number_of(found->get_ref<const std::string&>());
      if (!number.is_null()) *found = std::move(number);
    }
    if (field.is_whole) make_whole(*found);
  }
}

bool is_random_seed(const Json& seed) {
  return seed.is_number_integer() && !seed.is_number_unsigned() && seed.get<std::int64_t>() == -1;
}

Json own_settings(const Json& fields) {
  std::map<std::string, Json> sorted;
  if (!fields.is_object()) return Json::object();
  for (const auto& [key, value] : fields.items()) {
    const std::string name = field_name(key);
    const bool is_number = std::any_of(std::begin(kNumbers), std::end(kNumbers),
                                       [&](const NumberField& field) { return name == field.name; });
    if (!is_number && name != "negative_prompt") continue;
    Json parsed = value;
    if (is_number && value.is_string()) parsed = number_of(value.get_ref<const std::string&>());
    if (parsed.is_number()) {
      sorted[name] = parsed.get<double>();
    } else if (!value.is_null() && value != "") {
      sorted[name] = value;
    }
  }
  Json settings = Json::object();
  for (const auto& [name, value] : sorted) settings[name] = value;
  return settings;
}

}  // namespace lamplighter
