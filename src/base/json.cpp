#include "base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <unordered_set>
#include <utility>

#include "base/message.h"
#include "base/suggestion.h"
#include "base/utf8.h"

namespace lamplighter {
namespace {

std::string excerpt(const Json& value) {
  return shorten(to_text(value), 60);
}

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

constexpr std::size_t kMaxDepth = 200;

// Builds the value from the parser's events. Open containers lie on a stack; their addresses stay valid,
// because only the innermost one grows.
class Builder {
 public:
  Builder(std::string where, ExitCode code) : where_(std::move(where)), code_(code) {}
  Json take() { return std::move(root_); }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(std::int64_t value) { return put(value); }
  bool number_unsigned(std::uint64_t value) { return put(value); }
  bool number_float(double value, const std::string& /*text*/) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*size*/) { return open(Json::object()); }
  bool start_array(std::size_t /*size*/) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(const std::string& name) {
    auto& members = open_.back()->get_ref<Json::object_t&>();
    if (is_known(members, name)) fail(path() + "duplicate key " + excerpt(name));
    member_ = &members.emplace_back(name, nullptr).second;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const Json::exception& error) {
    // Syntax errors say line and column: "[json.exception.parse_error.101] parse error at line 2, column 5:
    // ..."
    std::string text = error.what();
    text.erase(0, text.find("] ") + 2);
    if (text.rfind("parse error", 0) != 0) text.insert(0, "byte " + std::to_string(position) + ": ");
    fail(shorten(text, 200));
  }

 private:
  [[noreturn]] void fail(std::string what) const {
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
    std::replace_if(what.begin(), what.end(), is_control, ' ');  // keys may contain control characters
    throw Error(code_, where_ + ": invalid JSON: " + what);
  }

  // Path of the innermost container, like "annotations[3]: ".
  std::string path() const {
    std::string text;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      const Json& outer = *open_[i];
      text += outer.is_array()
                  ? "[" + std::to_string(outer.size() - 1) + "]"
                  : (text.empty() ? "" : ".") + outer.get_ref<const Json::object_t&>().back().first;
    }
    return text.empty() ? "" : shorten(text, 60) + ": ";
  }

  Json* insert(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_object()) return &(*member_ = std::move(value));
    open_.back()->push_back(std::move(value));
    return &open_.back()->back();
  }
  // A set replaces the search through many members, which takes quadratic time.
  bool is_known(const Json::object_t& members, const std::string& name) {
    constexpr std::size_t few = 32;
    const auto is_named = [&](const auto& member) { return member.first == name; };
    if (members.size() < few) return std::any_of(members.begin(), members.end(), is_named);
    std::unordered_set<std::string>& known = keys_[open_.size()];
    if (members.size() == few) {
      known.clear();
      for (const auto& member : members) known.insert(member.first);
    }
    return !known.insert(name).second;
  }

  bool put(Json value) { return insert(std::move(value)) != nullptr; }
  bool open(Json container) {
    open_.push_back(insert(std::move(container)));
    if (open_.size() > kMaxDepth) fail(path() + "nested more than " + std::to_string(kMaxDepth) + " deep");
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string where_;
  ExitCode code_;
  Json root_;
  std::vector<Json*> open_;
  std::map<std::size_t, std::unordered_set<std::string>> keys_;  // of large open objects, by depth
  Json* member_ = nullptr;                                       // the member that the last key names
};

}  // namespace

Json parse_json(std::string_view text, const std::string& where, ExitCode code) {
  Builder builder(where, code);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
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

float JsonReader::fp32(const std::string& key) {
  const double found = number(key);
  constexpr float most = std::numeric_limits<float>::max();
  if (std::abs(found) > most) reject(key, "a number of at most 3.4e38, the most of fp32");
  return static_cast<float>(found);
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
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> result;
  for (const Json& element : array(key, "integers")) {
    if (!element.is_number_integer()) reject(key, "an array of integers");
    if (element.is_number_unsigned() && element.get<std::uint64_t>() > kMost) {
      throw Error(code_,
                  where_ + ": " + name(key) + ": got " + excerpt(element) + ", expected integers below 2^63");
    }
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

std::vector<std::string> JsonReader::keys() const {
  std::vector<std::string> names;
  for (const auto& member : object_->items()) names.push_back(member.key());
  return names;
}

void JsonReader::finish() const {
  for (const auto& [key, element] : object_->items()) {
    if (seen_.count(key) != 0) continue;
    std::set<std::string> known = asked_;
    known.insert(seen_.begin(), seen_.end());
    std::string names;
    for (const std::string& one : known) names += (names.empty() ? "" : ", ") + one;
    throw Error(code_, where_ + ": unknown field " + excerpt_of(name(key)) +
                           (names.empty() ? "" : ", expected one of " + shorten(names, 400)) +
                           did_you_mean(name(key), {known.begin(), known.end()}));
  }
}

}  // namespace lamplighter
