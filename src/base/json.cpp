#include "base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/utf8.h"

namespace lamplighter {
namespace {

std::string excerpt(const Json& value) {
  return shorten(value.dump(-1, ' ', false, Json::error_handler_t::replace), 60);
}

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// "line 2, column 5: syntax error ..." out of the parser's own message.
std::string describe(const nlohmann::json::parse_error& error) {
  std::string text = error.what();
  const std::size_t place = text.find("parse error");
  if (place != std::string::npos) text.erase(0, place);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where, ExitCode code) {
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(code, where + ": no valid JSON: " + shorten(describe(error), 200));
  } catch (const nlohmann::json::exception& error) {
    throw Error(code, where + ": no valid JSON: " + shorten(error.what(), 200));
  }
}

double shortest(float value) {
  std::array<char, 32> digits{};
  *std::to_chars(digits.data(), digits.data() + digits.size() - 1, value).ptr = '\0';
  return std::strtod(digits.data(), nullptr);
}

JsonReader::JsonReader(const Json& object, std::string where, ExitCode code, std::string path)
    : object_(&object), where_(std::move(where)), path_(std::move(path)), code_(code) {
  if (!object.is_object()) {
    throw Error(code_, where_ + ": " + (path_.empty() ? "" : path_ + ": ") + "got " + excerpt(object) +
                           ", expected a JSON object");
  }
}

std::string JsonReader::name(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

void JsonReader::fail(const std::string& message) const {
  throw Error(code_, where_ + ": " + (path_.empty() ? "" : path_ + ": ") + message);
}

void JsonReader::reject(const std::string& key, const std::string& expected) const {
  const auto found = object_->find(key);
  const std::string got = found == object_->end() ? "nothing" : excerpt(*found);
  throw Error(code_, where_ + ": " + name(key) + ": got " + got + ", expected " + expected);
}

const Json& JsonReader::value(const std::string& key) {
  seen_.insert(key);
  const auto found = object_->find(key);
  if (found == object_->end()) throw Error(code_, where_ + ": " + name(key) + " is missing");
  return *found;
}

std::string JsonReader::text(const std::string& key) {
  const Json& found = value(key);
  if (!found.is_string()) reject(key, "a string");
  return found.get<std::string>();
}

std::string JsonReader::choice(const std::string& key, const std::vector<std::string>& allowed) {
  std::string found = text(key);
  if (std::find(allowed.begin(), allowed.end(), found) == allowed.end())
    reject(key, "one of " + list(allowed));
  return found;
}

std::int64_t JsonReader::integer(const std::string& key, std::int64_t least, std::int64_t most) {
  using Limits = std::numeric_limits<std::int64_t>;
  const Json& found = value(key);
  const bool fits = found.is_number_integer() && !(found.is_number_unsigned() &&
                                                   found.get<std::uint64_t>() > std::uint64_t{Limits::max()});
  if (!fits || found.get<std::int64_t>() < least || found.get<std::int64_t>() > most) {
    std::string expected = "an integer";
    if (least != Limits::min()) expected += " >= " + std::to_string(least);
    if (most != Limits::max())
      expected += (least == Limits::min() ? " <= " : " and <= ") + std::to_string(most);
    reject(key, expected);
  }
  return found.get<std::int64_t>();
}

std::uint64_t JsonReader::unsigned_integer(const std::string& key) {
  const Json& found = value(key);
  if (!found.is_number_unsigned()) reject(key, "an integer of 0 to 2^64 - 1");
  return found.get<std::uint64_t>();
}

double JsonReader::number(const std::string& key) {
  const Json& found = value(key);
  if (!found.is_number() || !std::isfinite(found.get<double>())) reject(key, "a number");
  return found.get<double>();
}

bool JsonReader::boolean(const std::string& key) {
  const Json& found = value(key);
  if (!found.is_boolean()) reject(key, "true or false");
  return found.get<bool>();
}

const Json& JsonReader::array(const std::string& key, const char* of) {
  const Json& found = value(key);
  if (!found.is_array()) reject(key, std::string("an array of ") + of);
  return found;
}

std::vector<std::string> JsonReader::texts(const std::string& key) {
  std::vector<std::string> result;
  for (const Json& element : array(key, "strings")) {
    if (!element.is_string()) reject(key, "an array of strings");
    result.push_back(element.get<std::string>());
  }
  return result;
}

std::vector<std::int64_t> JsonReader::integers(const std::string& key) {
  std::vector<std::int64_t> result;
  for (const Json& element : array(key, "integers")) {
    if (!element.is_number_integer()) reject(key, "an array of integers");
    result.push_back(element.get<std::int64_t>());
  }
  return result;
}

JsonReader JsonReader::object(const std::string& key) {
  return {value(key), where_, code_, name(key)};
}

std::vector<JsonReader> JsonReader::objects(const std::string& key) {
  std::vector<JsonReader> result;
  for (const Json& element : array(key, "objects")) {
    result.emplace_back(element, where_, code_, name(key) + "[" + std::to_string(result.size()) + "]");
  }
  return result;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::members(const std::string& key) {
  std::vector<std::pair<std::string, JsonReader>> result;
  const Json& found = value(key);
  if (!found.is_object()) reject(key, "a JSON object");
  for (const auto& [member, element] : found.items()) {
    result.emplace_back(member, JsonReader(element, where_, code_, name(key) + "." + member));
  }
  return result;
}

void JsonReader::finish() const {
  for (const auto& [key, element] : object_->items()) {
    if (seen_.count(key) == 0) throw Error(code_, where_ + ": unknown field " + name(key));
  }
}

}  // namespace lamplighter
