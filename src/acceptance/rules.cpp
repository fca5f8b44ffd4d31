#include "acceptance/rules.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/message.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

template <class Value, std::size_t Count>
using Names = std::array<std::pair<Value, std::string_view>, Count>;

constexpr Names<Rule, 10> kRules{{{Rule::exact, "exact"},
                                  {Rule::lantern, "lantern"},
                                  {Rule::lantern_plus, "lantern++"},
                                  {Rule::traversal, "traversal"},
                                  {Rule::block, "block"},
                                  {Rule::cool, "cool"},
                                  {Rule::typical, "typical"},
                                  {Rule::grouped, "grouped"},
                                  {Rule::lenient, "lenient"},
                                  {Rule::official_pac, "official-pac"}}};
constexpr Names<Residual, 6> kResiduals{{{Residual::paper, "paper"},
                                         {Residual::optimal, "optimal"},
                                         {Residual::official_static, "official-static"},
                                         {Residual::official_dynamic, "official-dynamic"},
                                         {Residual::official_lumina_static, "official-lumina-static"},
                                         {Residual::official_lumina_dynamic, "official-lumina-dynamic"}}};

template <class Value, std::size_t Count>
Value value_of(const Names<Value, Count>& names, const std::string& name, const char* what) {
  std::string known;
  for (const auto& [value, text] : names) {
    if (text == name) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw Error(ExitCode::usage, std::string(what) + " \"" + excerpt_of(name) + "\": expected one of " + known);
}

template <class Value, std::size_t Count>
std::string name_of(const Names<Value, Count>& names, Value wanted) {
  for (const auto& [value, text] : names) {
    if (value == wanted) return std::string(text);
  }
  return "?";
}

}  // namespace

bool is_relaxed(Rule rule) {
  return borrows(rule) || rule >= Rule::cool;
}

bool borrows(Rule rule) {
  return rule == Rule::lantern || rule == Rule::lantern_plus;
}

bool is_official(Residual residual) {
  return residual != Residual::paper && residual != Residual::optimal;
}

Rule rule_from(const std::string& name) {
  return value_of(kRules, name, "rule");
}
Residual residual_from(const std::string& name) {
  return value_of(kResiduals, name, "residual");
}
std::string to_string(Rule rule) {
  return name_of(kRules, rule);
}
std::string to_string(Residual residual) {
  return name_of(kResiduals, residual);
}

}  // namespace lamplighter
