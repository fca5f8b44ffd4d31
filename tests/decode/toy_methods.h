#pragma once

#include <ATen/ops/tensor.h>

#include <string>
#include <utility>

#include "propose/drafters/self.h"
#include "propose/method.h"
#include "propose/windows/jacobi.h"
#include "propose/windows/open_windows.h"
#include "propose/windows/zipar.h"
#include "tests/kernels/common/operators.h"

// Methods for runs of the toy.
namespace lamplighter::test {

// Static trees: sampled children unless `top`.
inline Method static_method(Tree tree, const std::string& rule = "exact", bool top = false) {
  Method method;
  method.proposer = &make_eagle;
  method.tree = std::move(tree);
  method.judge.rule = rule_from(rule);
  method.judge.sampled = !top;
  return method;
}

// A chain that ends where the drafter is not sure of it.
inline Method ending_method(const std::string& chain, float confidence) {
  Method method = static_method(preset_tree(chain));
  method.confidence = confidence;
  return method;
}

// Speculative Jacobi decoding with a window of this chain.
inline Method window_method(const std::string& chain, WindowFill fill = WindowFill::uniform,
                            bool keep = true) {
  Method method = static_method(preset_tree(chain));
  method.proposer = &make_jacobi;
  method.window = {keep, fill};
  return method;
}

// The same judged as SJD-PAC's program draws.
inline Method official_window(const std::string& chain) {
  Method method = window_method(chain);
  method.judge.rule = Rule::official_pac;
  return method;
}

// Such a window whose first places the drafter fills.
inline Method front_method(const std::string& chain, std::int64_t front) {
  Method method = window_method(chain);
  method.window.front = front;
  return method;
}

// The first layers of the target draft, and see the prompt and so many rows of the picture; 0: all.
inline Method self_method(Tree tree, std::int64_t layers, std::int64_t window = 0) {
  Method method = static_method(std::move(tree));
  method.proposer = &make_self;
  method.self = {layers, window};
  return method;
}

// Rows side by side, each `ahead` codes behind the one above it.
inline Method zipar_method(std::int64_t ahead, bool blank = false) {
  Method method;
  method.proposer = &make_zipar;
  method.tree.reset();
  method.rows = {ahead, blank, 0};
  return method;
}

// The same with a window in every row, whose drafts see those of other rows or not.
inline Method windows_method(std::int64_t ahead, std::int64_t slots, bool across = false,
                             WindowFill fill = WindowFill::repeat, bool keep = true) {
  Method method;
  method.proposer = across ? &make_row_parallel : &make_zipar_windows;
  method.tree.reset();
  method.window = {keep, fill};
  method.rows = {ahead, false, slots};
  return method;
}

inline Method dynamic_method(std::int64_t passes, std::int64_t width, std::int64_t nodes) {
  Method method;
  method.proposer = &make_eagle;
  method.tree.reset();
  method.dynamic = {passes, width, nodes};
  method.judge.sampled = false;
  return method;
}

// int32 [codes, 3]: every code is next to the three behind it.
inline at::Tensor next_codes(std::int64_t codes) {
  return integers({codes, 3}, [=](std::int64_t i) { return (i / 3 + 1 + i % 3) % codes; }).to(at::kInt);
}

// A relaxed rule on a static tree of sampled children; neighbours int32 [codes, K].
inline Method relaxed_method(Tree tree, const std::string& rule, float bound, std::int64_t k,
                             const at::Tensor& neighbours) {
  Method method = static_method(std::move(tree), rule);
  method.judge.bounds = at::tensor({bound});
  method.judge.k = k;
  method.judge.neighbours = neighbours;
  return method;
}

// Two children of the root, three of theirs, and one below.
inline Tree bushy_tree() {
  return make_tree({{0}, {1}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}});
}

// Whether pictures take different numbers of cycles.
inline bool drafts(const Method& method) {
  if (method.proposer == &make_zipar) return false;
  return !method.tree || method.tree->drafted() > 0;
}

}  // namespace lamplighter::test
