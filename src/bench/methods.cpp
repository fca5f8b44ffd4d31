#include "bench/methods.h"

#include <algorithm>
#include <charconv>

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

struct Entry {
  std::string key, value;
  const std::string& method;

  [[noreturn]] void refuse(const std::string& expected) const {
    throw Error(ExitCode::usage,
                "--methods: got " + key + "=" + value + " in '" + method + "', expected " + expected);
  }
};

template <typename T>
T number(const Entry& entry, const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) entry.refuse("a number");
  return value;
}

void set(MethodOptions& options, const Entry& entry) {
  const std::string& key = entry.key;
  if (entry.value.empty()) entry.refuse("a value");
  for (const auto& [name, field] : {std::pair<const char*, std::string*>{"tree", &options.tree},
                                    {"rule", &options.rule},
                                    {"children", &options.children},
                                    {"residual", &options.residual},
                                    {"draft-guidance", &options.draft_guidance},
                                    {"drafter", &options.drafter},
                                    {"neighbours", &options.neighbours}}) {
    if (key == name) {
      *field = entry.value;
      return;
    }
  }
  if (key == "k") {
    options.k = number<std::int64_t>(entry, entry.value);
  } else if (key == "delta") {
    options.delta = number<float>(entry, entry.value);
  } else if (key == "lambda") {
    for (const std::string& part : split(entry.value, '/'))
      options.lambda.push_back(number<float>(entry, part));
  } else if (key == "depth") {
    options.dynamic_depth = number<int>(entry, entry.value);
  } else if (key == "width") {
    options.dynamic_width = number<int>(entry, entry.value);
  } else if (key == "nodes") {
    options.dynamic_nodes = number<int>(entry, entry.value);
  } else {
    entry.refuse(
        "tree, rule, children, residual, draft-guidance, drafter, neighbours, k, delta, lambda, depth, width "
        "or "
        "nodes");
  }
}

}  // namespace

MethodOptions parse_method(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  MethodOptions options;
  options.method = parts.front();
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
    const std::size_t equals = part->find('=');
    if (equals == std::string::npos)
      throw Error(ExitCode::usage, "--methods: got '" + *part + "' in '" + text + "', expected KEY=VALUE");
    set(options, {part->substr(0, equals), part->substr(equals + 1), text});
  }
  return options;
}

std::vector<BenchMethod> bench_methods(const std::vector<std::string>& texts,
                                       const std::vector<std::string>& trees) {
  std::vector<BenchMethod> methods{{"ar", {}}};
  const auto add = [&](BenchMethod method) {
    const bool known = std::any_of(methods.begin(), methods.end(),
                                   [&](const BenchMethod& other) { return other.name == method.name; });
    if (known) throw Error(ExitCode::usage, "--methods: got " + method.name + " twice");
    methods.push_back(std::move(method));
  };
  bool baseline = false, trees_used = trees.empty();
  for (const std::string& text : texts) {
    const MethodOptions options = parse_method(text);
    if (text == "ar" && !baseline) {
      baseline = true;
    } else if (trees.empty() || options.method == "ar" || !options.tree.empty()) {
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
    throw Error(ExitCode::usage,
                "--tree: got " + trees.front() +
                    ", expected a method that drafts and names no tree; give --methods eagle");
  }
  return methods;
}

}  // namespace lamplighter
