#include "bench/methods.h"

#include <algorithm>

#include "base/message.h"
#include "draft/options/option_values.h"
#include "draft/options/options.h"
#include "draft/registry.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

std::vector<std::string> split(const std::string& text, char mark) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(mark, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

void set(MethodOptions& options, const std::string& part, const std::string& method) {
  const auto refuse = [&](const std::string& expected) {
    throw Error(ExitCode::usage,
                "method: got " + quote(part) + " in " + quote(method) + ", expected " + expected);
  };
  const std::size_t equals = part.find('=');
  if (equals == std::string::npos) refuse("KEY=VALUE");
  const std::string value = part.substr(equals + 1);
  if (value.empty()) refuse("a value");
  const MethodOption& option =
      find_option(part.substr(0, equals), "method: " + quote(part) + " in " + quote(method));
  if (!parse_option(options, option, value)) refuse("a number");
}

// Joins list values by commas, as flags take them.
std::string flag_value(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& one : value) text += (text.empty() ? "" : ",") + one.dump();
  return text;
}

}  // namespace

MethodOptions parse_method(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  MethodOptions options;
  options.method = parts.front();
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) set(options, *part, text);
  return options;
}

std::string method_flags(const MethodOptions& options) {
  std::string flags = "--method " + options.method;
  for (const MethodOption& option : method_options()) {
    if (is_set(options, option))
      flags += " --" + flag_name(option) + " " + flag_value(to_json(options, option));
  }
  return flags;
}

std::vector<BenchMethod> bench_methods(const std::vector<std::string>& texts, const Sweep& sweep) {
  std::vector<BenchMethod> methods{{kBaseline, {}}};
  for (const std::string& text : texts) {
    const bool twice = text == kBaseline && std::count(texts.begin(), texts.end(), text) > 1;
    if (text != kBaseline || twice) methods.push_back({text, parse_method(text)});
  }
  methods = expand(std::move(methods), sweep);
  for (auto method = methods.begin(); method != methods.end(); ++method) {
    const auto same = [&](const BenchMethod& other) { return other.name == method->name; };
    if (std::any_of(methods.begin(), method, same))
      throw Error(ExitCode::usage, "methods: got " + method->name + " twice");
  }
  return methods;
}

}  // namespace lamplighter
