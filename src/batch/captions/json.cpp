#include <algorithm>
#include <array>
#include <utility>

#include "base/message.h"
#include "base/utf8.h"
#include "batch/captions/formats.h"
#include "pipeline/metadata/request_fields.h"

namespace lamplighter::captions {
namespace {

constexpr auto kNone = std::string_view::npos;

// Names of arrays of captions, besides the names of prompts.
constexpr std::array<std::string_view, 7> kListNames{"annotations", "data",    "items",   "records",
                                                     "rows",        "samples", "examples"};
// Fields that only records have.
constexpr std::array<std::string_view, 13> kRecordNames{
    "class", "seed",   "cfg_scale",   "temperature",     "top_p",  "top_k", "cfg_interval",
    "width", "height", "batch_count", "negative_prompt", "output", "method"};

template <class Names>
bool is_one_of(std::string_view word, const Names& names) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

std::vector<std::string> names_of(const Json& object) {
  std::vector<std::string> names;
  for (const auto& member : object.items()) names.push_back(field_name(member.key()));
  return names;
}

std::string list_keys(const Json& object) {
  std::string keys;
  for (const auto& member : object.items()) keys += (keys.empty() ? "" : ", ") + quote(member.key());
  return shorten(keys, 200);
}

bool is_list_of(const Json& value, bool (*fits)(const Json&)) {
  return value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), fits);
}
bool is_text(const Json& value) {
  return value.is_string();
}
bool is_text_or_object(const Json& value) {
  return value.is_string() || value.is_object();
}

void take_element(const Json& element, Entry::Form form, std::string where, const Source& source,
                  const TakeEntry& take) {
  if (element.is_string()) return take(make_text(std::move(where), element.get<std::string>()));
  if (element.is_object()) return take(make_record(form, std::move(where), element, source.options.column));
  take(make_failure(where, "got " + shorten(to_text(element), 60) + ", expected a text or an object"));
}

void take_array(const Json& array, const Source& source, const TakeEntry& take) {
  for (std::size_t i = 0; i < array.size(); ++i) {
    const std::string number = std::to_string(i);
    take_element(array[i], Entry::Form::record,
                 source.name + (source.options.says_element ? " element " + number : " [" + number + "]"),
                 source, take);
  }
}

// Settings beside a list of captions would belong to none of them. Values that `fits` takes are columns.
template <class Fits>
void refuse_settings_beside(const std::string& list, const Json& object, const Source& source,
                            const Fits& fits) {
  for (const auto& [name, value] : object.items()) {
    const std::string field = field_name(name);
    const bool is_setting = is_one_of(field, kRecordNames) && field != "class" && field != "output";
    if (name == list || !is_setting || value.is_null() || fits(value)) continue;
    throw Error(ExitCode::input, source.name + ": " + quote(name) + ": got " + shorten(to_text(value), 60) +
                                     " beside " + quote(list) +
                                     ", expected it in the record of each caption, or as a flag for all");
  }
}

void take_list(const std::string& key, const Json& object, const Source& source, const TakeEntry& take) {
  refuse_settings_beside(key, object, source, [](const Json&) { return false; });
  const Json& array = object.at(key);
  for (std::size_t i = 0; i < array.size(); ++i) {
    take_element(array[i], Entry::Form::data,
                 source.name + " " + excerpt_of(key) + "[" + std::to_string(i) + "]", source, take);
  }
}

void take_members(const Json& object, const Source& source, const TakeEntry& take) {
  for (const auto& [key, value] : object.items()) {
    take_element(value, Entry::Form::data, source.name + " " + quote(key), source,
                 [&, id = key](Entry entry) {
                   entry.id = id;
                   take(std::move(entry));
                 });
  }
}

// The value of a key in a column, which most likely has the keys of all columns in their order.
const Json* value_of_row(const Json& column, const std::string& key, std::size_t row) {
  if (!column.is_object()) return nullptr;
  const auto& members = column.get_ref<const Json::object_t&>();
  if (row < members.size() && members.data()[row].first == key) return &members.data()[row].second;
  const auto found = column.find(key);
  return found == column.end() ? nullptr : &*found;
}

// Columns of a data frame: arrays of one length, or objects with the same keys.
void take_columns(const Json& object, const std::string& prompts, const Source& source,
                  const TakeEntry& take) {
  const Json& leading = object.at(prompts);
  refuse_settings_beside(prompts, object, source, [](const Json& value) { return value.is_structured(); });
  for (const auto& [name, column] : object.items()) {
    const bool is_short = column.is_array() && leading.is_array() && column.size() != leading.size();
    if (is_short && is_one_of(field_name(name), kRecordNames)) {
      throw Error(ExitCode::input, source.name + ": " + quote(name) + ": got " +
                                       std::to_string(column.size()) + " values, expected " +
                                       std::to_string(leading.size()) + " as in " + quote(prompts));
    }
  }
  std::size_t row = 0;
  for (const auto& [key, unused] : leading.items()) {
    Json record = Json::object();
    for (const auto& [name, column] : object.items()) {
      if (column.is_array() && column.size() == leading.size()) record[name] = column[row];
      if (const Json* value = value_of_row(column, key, row)) record[name] = *value;
    }
    take(make_record(Entry::Form::data, source.name + " row " + std::to_string(row), std::move(record),
                     source.options.column));
    ++row;
  }
}

// A data frame as its columns' names and an array of rows.
bool is_split(const Json& object) {
  const auto columns = object.find("columns"), rows = object.find("data");
  return columns != object.end() && rows != object.end() && is_list_of(*columns, is_text) && rows->is_array();
}

void take_rows(const Json& object, const Source& source, const TakeEntry& take) {
  const Json& columns = object["columns"];
  std::size_t number = 0;
  for (const Json& row : object["data"]) {
    const std::string where = source.name + " data[" + std::to_string(number++) + "]";
    if (!row.is_array() || row.size() != columns.size()) {
      take(make_failure(where, "got " + shorten(to_text(row), 60) + ", expected an array of " +
                                   std::to_string(columns.size()) + " values"));
      continue;
    }
    Json record = Json::object();
    auto& members = record.get_ref<Json::object_t&>();
    for (std::size_t i = 0; i < columns.size(); ++i)
      members.emplace_back(columns[i].get<std::string>(), row[i]);
    take(make_record(Entry::Form::data, where, std::move(record), source.options.column));
  }
}

// The member that holds the prompts: of the name that is asked for, or of one that prompts have.
std::string prompts_of(const Json& object, const std::string& column) {
  for (const auto& member : object.items()) {
    if (!column.empty() && member.key() == column) return member.key();
  }
  const std::vector<std::string> names = names_of(object);
  const std::string wanted = column.empty() ? find_prompt_name(names) : field_name(column);
  for (const auto& member : object.items()) {
    if (!wanted.empty() && field_name(member.key()) == wanted) return member.key();
  }
  return "";
}

std::vector<std::string> lists_of(const Json& object) {
  std::vector<std::string> lists;
  for (const auto& [key, value] : object.items()) {
    if (is_list_of(value, is_text_or_object)) lists.push_back(key);
  }
  if (lists.size() < 2) return lists;
  std::vector<std::string> named;
  std::copy_if(lists.begin(), lists.end(), std::back_inserter(named),
               [](const std::string& key) { return is_one_of(field_name(key), kListNames); });
  return named.size() == 1 ? named : lists;
}

// COCO's files describe images beside the captions of the annotations; other sets may have a list of this
// name.
bool is_coco(const Json& object) {
  if (object.contains("annotations")) return true;
  const auto images = object.find("images");
  if (images == object.end()) return false;
  const bool has_first = images->is_array() && !images->empty();
  const bool holds_captions =
      has_first && (images->front().is_string() ||
                    (images->front().is_object() && !find_prompt_name(names_of(images->front())).empty()));
  return !holds_captions;
}

void read_object(const Json& object, const std::string& where, const Source& source, const TakeEntry& take) {
  if (is_coco(object)) return read_coco(source, take);
  if (is_split(object)) return take_rows(object, source, take);
  const std::string prompts = prompts_of(object, source.options.column);
  const auto found = object.find(prompts);
  if (found != object.end() && found->is_structured() && !found->empty()) {
    const bool is_plain = is_list_of(*found, is_text);
    if (found->is_object() || (is_plain && object.size() > 1))
      return take_columns(object, prompts, source, take);
    if (is_list_of(*found, is_text_or_object)) return take_list(prompts, object, source, take);
  }
  const std::vector<std::string> lists = lists_of(object);
  const bool holds_list = prompts.empty() && lists.size() == 1 && !is_one_of("class", names_of(object));
  if (is_record(object) && !holds_list)
    return take(make_record(Entry::Form::record, where, object, source.options.column));
  if (lists.size() == 1) return take_list(lists.front(), object, source, take);
  if (lists.size() > 1) {
    throw Error(ExitCode::input, where + ": got several arrays of captions, " + list_keys(object) +
                                     "; --column names the one to read");
  }
  const bool is_map = std::all_of(object.begin(), object.end(), is_text_or_object);
  if (is_map && prompts.empty()) return take_members(object, source, take);
  if (prompts.empty() && source.options.column.empty()) {
    throw Error(ExitCode::input,
                where + ": got an object of " + list_keys(object) +
                    ", expected prompt, caption, text or class, an array of captions, or ids "
                    "with captions; --column names another key");
  }
  take(make_record(Entry::Form::record, where, object, source.options.column));
}

// Tells a value from the beginning of a text like "1girl, solo]".
bool is_literal(std::string_view rest) {
  std::string_view word = rest.substr(0, std::min(rest.find_first_of(",] \t\r\n"), rest.size()));
  const std::size_t next = rest.find_first_not_of(" \t\r\n", word.size());
  if (next != kNone && rest[next] != ',' && rest[next] != ']') return false;
  return word == "null" || word == "true" || word == "false" || word == "NaN" ||
         (!word.empty() && word.find_first_not_of("-+.0123456789eE") == kNone);
}

}  // namespace

std::size_t end_of_value(std::string_view text, std::size_t begin) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return text.size();
}

bool begins_array(std::string_view text) {
  const std::size_t bracket = text.find_first_not_of(" \t\r\n");
  if (bracket == kNone || text[bracket] != '[') return false;
  const std::size_t next = text.find_first_not_of("[ \t\r\n", bracket + 1);
  if (next == kNone) return true;
  const std::string_view rest = text.substr(next);  // "[[red]] boat" is a caption
  if (rest[0] == '{') return begins_object(rest);
  return rest[0] == '"' || rest[0] == ']' || is_literal(rest);
}

bool begins_object(std::string_view line) {
  const std::size_t next = line.find_first_not_of(" \t\r\n", 1);
  if (next == kNone || line[next] == '"' || line[next] == '}') return true;
  const std::string_view inside = line.substr(0, line.find('}'));
  return inside.size() == line.size() || (line[next] != '{' && inside.find('|') == kNone);
}

bool is_record(const Json& object) {
  const std::vector<std::string> names = names_of(object);
  const std::string prompt = find_prompt_name(names);
  for (const auto& member : object.items()) {
    if (!prompt.empty() && field_name(member.key()) == prompt) return !member.value().is_structured();
  }
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return is_one_of(name, kRecordNames); });
}

Json parse_captions_json(std::string_view text, const std::string& where) {
  try {
    return parse_json(text, where, ExitCode::input);
  } catch (const Error& error) {
    throw Error(error.code(),
                error.what() + std::string("; for a caption with this text use {\"prompt\": \"...\"}"));
  }
}

void read_coco(const Source& source, const TakeEntry& take) {
  const Json file = parse_json(source.text, source.name, ExitCode::input);
  JsonReader reader(file, source.name, ExitCode::input);
  if (!reader.value("annotations").is_array()) reader.reject("annotations", "an array");
  std::size_t number = 0;
  for (const Json& annotation : file["annotations"]) {
    Entry entry;
    entry.form = Entry::Form::annotation;
    entry.where = source.name + " annotations[" + std::to_string(number++) + "]";
    entry.record = annotation;
    take(std::move(entry));
  }
}

void read_json(const Source& source, const TakeEntry& take) {
  const std::size_t begin = source.text.find_first_not_of(" \t\r\n");
  const std::size_t end = source.text.find_last_not_of(" \t\r\n") + 1;
  const bool is_line = begin != kNone && source.text[begin] == '{' &&
                       source.text.substr(begin, end - begin).find('\n') == kNone;
  const std::string where = is_line ? source.line(1) : source.name;
  const bool is_named = ends_with(source.name, ".json") || source.options.format == "json";
  const Json json =
      is_named ? parse_json(source.text, where, ExitCode::input) : parse_captions_json(source.text, where);
  if (json.is_array()) return take_array(json, source, take);
  if (json.is_object()) return read_object(json, where, source, take);
  throw Error(ExitCode::input,
              where + ": got " + shorten(to_text(json), 60) + ", expected a JSON array or object");
}

}  // namespace lamplighter::captions
