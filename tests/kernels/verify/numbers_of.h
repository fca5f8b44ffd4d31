#pragma once

#include <algorithm>
#include <vector>

#include "acceptance/rules.h"

namespace lamplighter::test {

// The numbers of a rule: epsilon and alpha, gap and distance, or one for each depth; none for other rules.
inline RuleNumbers numbers_of(Rule rule, const std::vector<float>& values) {
  RuleNumbers numbers;
  const auto by_depth = [&](ByDepth& all) {
    all.count = static_cast<int>(values.size());
    std::copy(values.begin(), values.end(), all.values);
  };
  if (rule == Rule::lantern) by_depth(numbers.delta);
  if (rule == Rule::lantern_plus) by_depth(numbers.lambda);
  if (rule == Rule::cool || rule == Rule::lenient) by_depth(numbers.weights);
  if (rule == Rule::typical) numbers.epsilon = values.front(), numbers.alpha = values.back();
  if (rule == Rule::grouped) numbers.group_gap = values.front(), numbers.group_distance = values.back();
  return numbers;
}

}  // namespace lamplighter::test
