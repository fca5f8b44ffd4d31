#include <algorithm>
#include <cctype>
#include <utility>

#include "draft/options/tables.h"

namespace lamplighter {

using namespace option_rows;  // NOLINT(google-build-using-namespace)

namespace {

struct Number {
  const RuleTraits* rule;
  const RuleOption* option;
};

// The numbers of this key, one for each rule that has it.
std::vector<Number> numbers_of(const std::string& key) {
  std::vector<Number> numbers;
  for (const RuleTraits& rule : kRules) {
    for (const RuleOption& option : rule.options) {
      if (option.key != nullptr && key == option.key) numbers.push_back({&rule, &option});
    }
  }
  return numbers;
}

MethodOption option_of(const std::vector<Number>& numbers) {
  const auto find = [numbers](const Run& run) -> const RuleOption* {
    const auto found = std::find_if(numbers.begin(), numbers.end(), [&](const Number& number) {
      return number.rule == &traits_of(run.rule);
    });
    return found == numbers.end() ? nullptr : found->option;
  };
  std::string help, usual;
  Limits limits{kAny, -kAny};
  for (const auto& [rule, option] : numbers) {
    const std::string name = std::string(" (") + rule->name + ")";
    std::string meaning = option->help;
    if (!help.empty()) meaning.front() = static_cast<char>(std::tolower(meaning.front()));
    help += (help.empty() ? "" : "; ") + meaning + name;
    usual += (usual.empty() ? "" : ", ") + number_text(option->usual) + (numbers.size() > 1 ? name : "");
    limits.least = std::min(limits.least, option->least);
    limits.most = std::max(limits.most, option->most);
  }
  const RuleOption& first = *numbers.front().option;
  return row(
      first.key, first.word, first.label, kRelaxed, "X", help,
      std::visit([](auto field) { return MethodOption::Field(field); }, first.field),
      [=](const Run& run) { return run.entry.verifies() && find(run) != nullptr; }, limits,
      {usual, [=](const Run& run) { return find(run)->usual; }},
      [=](const Run& run) { return Narrow{range(find(run)->least, find(run)->most, for_rule(run))}; },
      "rule");
}

}  // namespace

std::vector<MethodOption> rule_number_options() {
  std::vector<MethodOption> options;
  for (const RuleTraits& rule : kRules) {
    for (const RuleOption& option : rule.options) {
      if (option.key == nullptr) break;
      const std::vector<Number> numbers = numbers_of(option.key);
      if (numbers.front().option == &option) options.push_back(option_of(numbers));
    }
  }
  return options;
}

}  // namespace lamplighter
