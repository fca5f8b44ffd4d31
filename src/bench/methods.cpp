#include "bench/methods.h"

#include <algorithm>

#include "lamplighter/error.h"
#include "propose/options.h"
#include "propose/registry.h"

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
    throw Error(ExitCode::usage, "method: got '" + part + "' in '" + method + "', expected " + expected);
  };
  const std::size_t equals = part.find('=');
  if (equals == std::string::npos) refuse("KEY=VALUE");
  const std::string key = part.substr(0, equals), value = part.substr(equals + 1);
  if (value.empty()) refuse("a value");
  std::string known;
  for (const MethodOption& option : method_options()) {
    if (key == option.word) {
      if (!parse_option(options, option, value)) refuse("a number");
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(option.word);
  }
  refuse(known);
}

}  // namespace

MethodOptions parse_method(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  MethodOptions options;
  options.method = parts.front();
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) set(options, *part, text);
  return options;
}

std::vector<BenchMethod> bench_methods(const std::vector<std::string>& texts,
                                       const std::vector<std::string>& trees) {
  std::vector<BenchMethod> methods{{kBaseline, {}}};
  const auto add = [&](BenchMethod method) {
    const bool known = std::any_of(methods.begin(), methods.end(),
                                   [&](const BenchMethod& other) { return other.name == method.name; });
    if (known) throw Error(ExitCode::usage, "methods: got " + method.name + " twice");
    methods.push_back(std::move(method));
  };
  bool baseline = false, trees_used = trees.empty();
  for (const std::string& text : texts) {
    const MethodOptions options = parse_method(text);
    if (text == kBaseline && !baseline) {
      baseline = true;
    } else if (trees.empty() || !find_method(options.method).drafts() || !options.tree.empty()) {
      add({text, options});
    } else {
      trees_used = true;
      for (const std::string& tree : trees) {
        add({text + ":tree=" + tree, options});
        methods.back().options.tree = tree;
      }
    }
  }
  if (!trees_used) {
    throw Error(ExitCode::usage, "tree: got " + trees.front() +
                                     ", expected a method that drafts and names no tree, such as eagle");
  }
  return methods;
}

}  // namespace lamplighter
