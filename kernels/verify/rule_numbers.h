#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <variant>
#include <vector>

#include "acceptance/rules.h"
#include "kernels/common/checks.h"

namespace lamplighter {

// `bounds` of the operator verify_tree, fp32 [B], as the rule's numbers: values of its options (kRules) in
// their order; a list takes all that are left. Rules without numbers read none.
inline RuleNumbers numbers_from(Rule rule, const at::Tensor& bounds) {
  check_dtype("verify_tree", "bounds", bounds, at::kFloat);
  const RuleTraits& traits = traits_of(rule);
  RuleNumbers numbers;
  if (traits.set == nullptr || bounds.is_meta()) return numbers;
  const at::Tensor values = bounds.cpu().contiguous();
  const float *next = values.const_data_ptr<float>(), *end = next + values.numel();
  MethodOptions options;
  std::string keys;
  bool enough = true;
  for (const RuleOption& option : traits.options) {
    if (option.key == nullptr) break;
    keys += (keys.empty() ? "" : ", ") + std::string(option.key);
    enough = enough && next < end;
    if (!enough) continue;
    if (const auto* list = std::get_if<std::vector<float> MethodOptions::*>(&option.field)) {
      (options.*(*list)).assign(next, end);
      next = end;
    } else {
      options.*std::get<std::optional<float> MethodOptions::*>(option.field) = *next++;
    }
  }
  TORCH_CHECK(enough && next == end, "verify_tree: bounds have ", values.numel(), " entries, expected ", keys,
              " of rule ", traits.name);
  traits.set(options, numbers);
  return numbers;
}

}  // namespace lamplighter
