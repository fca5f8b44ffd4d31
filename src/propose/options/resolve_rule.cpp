#include <algorithm>
#include <sstream>

#include "propose/options/resolve.h"
#include "propose/options/resolve_parts.h"

namespace lamplighter {
namespace {

// What only rules that borrow read may stand in other runs where it says nothing.
void check_unborrowed(const MethodOptions& method) {
  const auto refuse_where = [&](bool told, const char* key) {
    if (told) refuse(std::string(key) + " needs the rule lantern or lantern++, this run has " + method.rule);
  };
  refuse_where(method.k.value_or(0) != 0, "relax_k");
  refuse_where(!method.residual.empty() && residual_from(method.residual) != Residual::paper, "residual");
  refuse_where(!method.neighbours.empty(), "neighbours");
}

// The weights of Cool-SD: nu as published, about 2 for the first drafted token.
void resolve_cool(MethodOptions& method) {
  if (!method.delta) method.delta = 4.0F;
  if (!method.mu) method.mu = 0.0F;
  if (!method.nu) method.nu = 0.7F;
}

// As Medusa's program calls it.
void resolve_typical(MethodOptions& method) {
  if (!method.epsilon) method.epsilon = 0.09F;
  if (!method.alpha) method.alpha = 0.3F;
}

// As published.
void resolve_grouped(MethodOptions& method) {
  if (!method.group_gap) method.group_gap = 0.15F;
  if (!method.group_distance) method.group_distance = 0.5F;
}

// Half as strict as the exact rule.
void resolve_lenient(MethodOptions& method) {
  if (!method.lenience) method.lenience = 0.5F;
}

// What one rule reads is refused where another is asked for.
void check_bounds(const MethodOptions& method, Rule rule) {
  const auto refuse_where = [&](bool wrong, const char* key, const char* rules) {
    if (wrong) refuse(std::string(key) + " needs the rule " + rules + ", this run has " + method.rule);
  };
  if (method.delta && !method.lambda.empty())
    refuse("delta and lambda exclude each other: delta belongs to lantern and cool, lambda to lantern++");
  const bool cool = rule == Rule::cool;
  refuse_where(method.delta && rule != Rule::lantern && !cool, "delta", "lantern or cool");
  refuse_where(!method.lambda.empty() && rule != Rule::lantern_plus, "lambda", "lantern++");
  refuse_where(method.mu && !cool, "mu", "cool");
  refuse_where(method.nu && !cool, "nu", "cool");
  const bool typical = rule == Rule::typical;
  refuse_where(method.epsilon && !typical, "epsilon", "typical");
  refuse_where(method.alpha && !typical, "alpha", "typical");
  refuse_where(method.lenience && rule != Rule::lenient, "lenience", "lenient");
  const bool grouped = rule == Rule::grouped;
  refuse_where(method.group_gap && !grouped, "group_gap", "grouped");
  refuse_where(method.group_distance && !grouped, "group_distance", "grouped");
  if (rule == Rule::lantern && method.delta.value_or(0) > 1) {
    std::ostringstream delta;
    delta << *method.delta;
    refuse("delta: got " + delta.str() + ", expected 0 to 1 for the rule lantern");
  }
}

}  // namespace

void resolve_rule(MethodOptions& method, Rule rule, std::int64_t codes) {
  check_bounds(method, rule);
  const bool delta = rule == Rule::lantern, lambda = rule == Rule::lantern_plus;
  if (!borrows(rule)) check_unborrowed(method);
  if (rule == Rule::cool) resolve_cool(method);
  if (rule == Rule::typical) resolve_typical(method);
  if (rule == Rule::grouped) resolve_grouped(method);
  if (rule == Rule::lenient) resolve_lenient(method);
  if (delta && !method.delta) method.delta = 0.05F;
  if (lambda && method.lambda.empty()) method.lambda = {2.0F};
  if (!method.k) method.k = delta ? std::max<std::int64_t>(1, codes / 32) : lambda ? 10 : 0;
  if (*method.k >= codes) {
    refuse("relax_k: got " + std::to_string(*method.k) + ", expected 0.." + std::to_string(codes - 1) +
           ": there are " + std::to_string(codes) + " codes");
  }
}

Rule rule_of(const MethodOptions& method) {
  const MethodEntry& entry = find_method(method.method);
  if (!method.rule.empty()) return rule_from(method.rule);
  return method.lenience && entry.rule == Rule::exact ? Rule::lenient : entry.rule;
}

}  // namespace lamplighter
