#include "draft/options/options.h"

#include <algorithm>

#include "base/message.h"
#include "base/suggestion.h"
#include "draft/options/option_values.h"
#include "lamplighter/error.h"
#include "tree/tree.h"

namespace lamplighter {
namespace {

constexpr const char* kTreePaths = "tree_paths";  // of a tree that a file gave, beside its name

const MethodOption& option_of(const std::string& key) {
  const std::vector<MethodOption>& options = method_options();
  return *std::find_if(options.begin(), options.end(),
                       [&](const MethodOption& option) { return key == option.key; });
}

// Without a bundle: methods that draft nothing generate tokens of any kind.
MethodContext context_of(const MethodOptions& method) {
  const MethodEntry& entry = find_method(method.method);
  const bool continuous = entry.is_continuous() || !entry.drafts();
  return {method, entry, continuous ? Rule::exact : rule_of(method), continuous};
}

}  // namespace

const MethodOption& find_option(const std::string& word, const std::string& where) {
  std::vector<std::string> known;
  for (const MethodOption& option : method_options()) {
    if (word == option.word) return option;
    known.emplace_back(option.word);
  }
  throw Error(ExitCode::usage,
              where + ": got " + quote(word) + ", expected " + list_of(known) + did_you_mean(word, known));
}

Rule rule_of(const MethodOptions& method) {
  const MethodEntry& entry = find_method(method.method);
  if (!method.rule.empty()) return rule_from(method.rule);
  if (entry.rule != Rule::exact) return entry.rule;
  for (const RuleTraits& rule : kRules) {
    if (rule.chosen_by_number() && is_set(method, option_of(rule.options[0].key)))
      return rule_from(rule.name);
  }
  return entry.rule;
}

bool is_read(const MethodOptions& method, const MethodOption& option) {
  return option.reads(context_of(method));
}

bool can_vary(const MethodOptions& method, const MethodOption& option) {
  const MethodContext run = context_of(method);
  if (!option.reads(run)) return false;
  if (option.limits.choices.empty() || !option.narrow) return true;
  const std::vector<Limits> all = option.narrow(run);
  return std::none_of(all.begin(), all.end(), [](const Limits& one) { return one.choices.size() == 1; });
}

std::string flag_name(const MethodOption& option) {
  std::string name = option.key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

void write_options(const MethodOptions& method, Json& json) {
  for (const MethodOption& option : method_options()) {
    const bool idle = std::string(option.follows) == "rule" && !is_read(method, option);
    if (is_set(method, option) && !idle) json[option.key] = to_json(method, option);
  }
  const std::string name = tree_name(method.tree);
  if (name == method.tree) return;
  json["tree"] = name;
  json[kTreePaths] = tree_to_json(load_tree(method.tree)).at("paths");
}

std::string number_words(const MethodOptions& method) {
  std::string words;
  for (const MethodOption& option : method_options()) {
    if (std::holds_alternative<std::string MethodOptions::*>(option.field)) continue;
    if (!is_set(method, option) || !is_read(method, option)) continue;
    const Json value = to_json(method, option);
    std::string text;
    for (const Json& number : value.is_array() ? value : Json::array({value}))
      text += (text.empty() ? "" : "/") +
              (number.is_number_float() ? number_text(number.get<float>()) : number.dump());
    words += (words.empty() ? "" : ", ") + std::string(option.word) + " " + text;
  }
  return words;
}

MethodOptions read_options(JsonReader& reader) {
  MethodOptions method;
  for (const MethodOption& option : method_options()) {
    if (reader.has(option.key)) read_value(method, option, reader);
  }
  if (reader.has(kTreePaths))
    method.tree = Json{{"paths", reader.value(kTreePaths)}, {"about", method.tree}}.dump();
  return method;
}

MethodOptions merge_options(const MethodOptions& recorded, const MethodOptions& given) {
  MethodOptions merged = recorded;
  const auto changed = [&](const MethodOption& option) {
    return is_set(given, option) &&
           std::visit([&](auto field) { return given.*field != recorded.*field; }, option.field);
  };
  for (const MethodOption& option : method_options()) {
    const bool dropped = *option.follows != '\0' && changed(option_of(option.follows));
    const MethodOptions& source = is_set(given, option) || dropped ? given : recorded;
    std::visit([&](auto field) { merged.*field = source.*field; }, option.field);
  }
  return merged;
}

MethodOptions merge_methods(const MethodOptions& recorded, const MethodOptions& given, bool names_method) {
  return names_method && given.method != recorded.method ? given : merge_options(recorded, given);
}

bool is_same(const MethodOptions& one, const MethodOptions& other) {
  const std::vector<MethodOption>& options = method_options();
  return one.method == other.method &&
         std::all_of(options.begin(), options.end(), [&](const MethodOption& option) {
           return std::visit([&](auto field) { return one.*field == other.*field; }, option.field);
         });
}

void check_options(const MethodOptions& method) {
  for (const MethodOption& option : method_options()) {
    if (is_set(method, option)) check_value(method, option, option.limits);
  }
}

}  // namespace lamplighter
