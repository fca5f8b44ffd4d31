#include "acceptance/rules.h"

#include <iterator>

#include "base/message.h"
#include "base/suggestion.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

// In the order of the enumeration.
constexpr const char* kResiduals[] = {"paper",
                                      "optimal",
                                      "official-static",
                                      "official-dynamic",
                                      "official-lumina-static",
                                      "official-lumina-dynamic"};

// The position of `name` among `names`.
std::size_t index_of(const std::vector<std::string>& names, const std::string& name, const char* key) {
  for (std::size_t place = 0; place < names.size(); ++place) {
    if (names[place] == name) return place;
  }
  throw Error(ExitCode::usage, std::string(key) + ": got " + quote(name) + ", expected " + list_of(names) +
                                   did_you_mean(name, names));
}

}  // namespace

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const RuleTraits& rule : kRules) names.emplace_back(rule.name);
  return names;
}

std::vector<std::string> residual_names() {
  return {std::begin(kResiduals), std::end(kResiduals)};
}

Rule rule_from(const std::string& name) {
  return static_cast<Rule>(index_of(rule_names(), name, "rule"));
}

Residual residual_from(const std::string& name) {
  return static_cast<Residual>(index_of(residual_names(), name, "residual"));
}

std::string to_string(Rule rule) {
  return traits_of(rule).name;
}

std::string to_string(Residual residual) {
  return kResiduals[static_cast<std::size_t>(residual)];
}

}  // namespace lamplighter
