#include "draft/options/option_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/message.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

// f(value) of the option's own type.
template <class Method, class F>
decltype(auto) with_value(Method& method, const MethodOption& option, F f) {
  return std::visit([&](auto field) -> decltype(auto) { return f(method.*field); }, option.field);
}

bool is_full(const std::string& text) {
  return !text.empty();
}
template <class T>
bool is_full(const std::optional<T>& value) {
  return value.has_value();
}
bool is_full(const std::vector<float>& list) {
  return !list.empty();
}

bool parse(std::string& value, const std::string& text) {
  value = text;
  return true;
}
template <class T>
bool parse(std::optional<T>& value, const std::string& text) {
  value.emplace();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}
bool parse(std::vector<float>& list, const std::string& text) {
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find('/', begin);
    std::optional<float> value;
    if (!parse(value, text.substr(begin, end == std::string::npos ? end : end - begin))) return false;
    list.push_back(*value);
  }
  return true;
}

// Names of files may hold any bytes, JSON may not.
Json to_json(const std::string& text) {
  return encode_utf8(decode_utf8(text));
}
Json to_json(std::int64_t value) {
  return value;
}
Json to_json(float value) {
  return shortest(value);
}
template <class T>
Json to_json(const std::optional<T>& value) {
  return to_json(*value);
}
Json to_json(const std::vector<float>& list) {
  Json json = Json::array();
  for (const float value : list) json.push_back(shortest(value));
  return json;
}

void read(std::string& value, const MethodOption& option, JsonReader& reader) {
  value = reader.text(option.key);
  if (value.empty()) reader.reject(option.key, "a name");
}
void read(std::optional<std::int64_t>& value, const MethodOption& option, JsonReader& reader) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto& [least, most, choices, why] = option.limits;
  value = reader.integer(option.key, static_cast<std::int64_t>(least),
                         std::isinf(most) ? kMost : static_cast<std::int64_t>(most));
}
void read(std::optional<float>& value, const MethodOption& option, JsonReader& reader) {
  value = reader.fp32(option.key);
}
void read(std::vector<float>& list, const MethodOption& option, JsonReader& reader) {
  const Json& json = reader.value(option.key);
  if (json.is_array() && json.empty()) reader.reject(option.key, "a list of numbers");
  for (const Json& value : json.is_array() ? json : Json::array({json})) {
    if (!value.is_number()) reader.reject(option.key, "a list of numbers");
    list.push_back(value.get<float>());
  }
}

std::string to_text(double number) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

std::string range_of(double least, double most) {
  if (std::isinf(least)) return "a finite number";
  return to_text(least) + (std::isinf(most) ? " or more" : " to " + to_text(most));
}

[[noreturn]] void refuse_value(const MethodOption& option, const std::string& got,
                               const std::string& expected) {
  throw Error(ExitCode::usage, std::string(option.key) + ": got " + got + ", expected " + expected);
}

void check(const std::string& text, const MethodOption& option, const Limits& limits) {
  const std::vector<std::string>& names = limits.choices;
  if (names.empty() || std::find(names.begin(), names.end(), text) != names.end()) return;
  refuse_value(option, quote(text), list_of(names) + limits.why + did_you_mean(text, names));
}
void check(double number, const MethodOption& option, const Limits& limits) {
  const double least = std::max(option.limits.least, limits.least);
  const double most = std::min(option.limits.most, limits.most);
  if (std::isfinite(number) && number >= least && number <= most) return;
  refuse_value(option, to_text(number), range_of(least, most) + limits.why);
}
void check(const std::optional<std::int64_t>& value, const MethodOption& option, const Limits& limits) {
  check(static_cast<double>(*value), option, limits);
}
void check(const std::optional<float>& value, const MethodOption& option, const Limits& limits) {
  check(shortest(*value), option, limits);
}
void check(const std::vector<float>& list, const MethodOption& option, const Limits& limits) {
  for (const float value : list) check(shortest(value), option, limits);
}

void set(std::string& text, const MethodOption::Value& value) {
  text = std::get<std::string>(value);
}
template <class T>
void set(std::optional<T>& number, const MethodOption::Value& value) {
  number = std::get<T>(value);
}
void set(std::vector<float>& list, const MethodOption::Value& value) {
  list = {std::get<float>(value)};
}

}  // namespace

bool is_set(const MethodOptions& method, const MethodOption& option) {
  return with_value(method, option, [](const auto& value) { return is_full(value); });
}

bool parse_option(MethodOptions& method, const MethodOption& option, const std::string& text) {
  return with_value(method, option, [&](auto& value) { return parse(value, text); });
}

Json to_json(const MethodOptions& method, const MethodOption& option) {
  return with_value(method, option, [](const auto& value) { return to_json(value); });
}

void read_value(MethodOptions& method, const MethodOption& option, JsonReader& reader) {
  with_value(method, option, [&](auto& value) { read(value, option, reader); });
}

void set_value(MethodOptions& method, const MethodOption& option, const MethodOption::Value& value) {
  with_value(method, option, [&](auto& field) { set(field, value); });
}

void check_value(const MethodOptions& method, const MethodOption& option, const Limits& limits) {
  with_value(method, option, [&](const auto& value) { check(value, option, limits); });
}

std::string number_text(float number) {
  return to_text(shortest(number));
}

}  // namespace lamplighter
