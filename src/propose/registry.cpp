#include "propose/registry.h"

#include "lamplighter/error.h"

namespace lamplighter {

const std::vector<MethodEntry>& methods() {
  static const std::vector<MethodEntry> rows{
      {kBaseline, "one token a pass", TreeKind::none, DrafterKind::none},
      {"eagle", "a static tree of drawn tokens, the law of ar", TreeKind::fixed, DrafterKind::eagle,
       Rule::exact, "sampled"},
      {"eagle-2", "a tree of the drafter's most probable tokens, the law of ar", TreeKind::dynamic,
       DrafterKind::eagle, Rule::exact, "top"},
      {"lantern", "as eagle; tokens borrow the probability of their neighbours, delta at most",
       TreeKind::fixed, DrafterKind::eagle, Rule::lantern, "sampled"},
      {"lantern++", "as lantern, up to lambda times their own probability", TreeKind::fixed,
       DrafterKind::eagle, Rule::lantern_plus, "sampled"}};
  return rows;
}

const MethodEntry& find_method(const std::string& name) {
  for (const MethodEntry& method : methods()) {
    if (name == method.name) return method;
  }
  throw Error(ExitCode::usage, "method: got '" + name + "', expected " + method_names());
}

std::string method_names(bool drafting) {
  std::string names;
  for (const MethodEntry& method : methods()) {
    if (!drafting || method.drafts()) names += (names.empty() ? "" : ", ") + std::string(method.name);
  }
  return names;
}

std::vector<std::string> missing_for(const MethodEntry& method, const Manifest& manifest) {
  std::vector<std::string> missing = missing_for_generation(manifest);
  if (method.needs_drafter() && manifest.drafters.empty()) missing.emplace_back("drafters");
  return missing;
}

}  // namespace lamplighter
