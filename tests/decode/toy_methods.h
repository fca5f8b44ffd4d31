#pragma once

#include <ATen/ops/tensor.h>

#include <string>
#include <utility>

#include "draft/drafters/eagle.h"
#include "draft/drafters/self.h"
#include "draft/method.h"
#include "draft/rows/row_parallel_jacobi.h"
#include "draft/rows/zipar.h"
#include "draft/windows/jacobi.h"
#include "draft/windows/sjd_pac_official.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/verify/numbers_of.h"

// Methods for runs of the toy.
namespace lamplighter::test {

// Static trees: sampled children unless `top`.
inline Method static_method(Tree tree, const std::string& rule = "exact", bool top = false) {
  Method method;
  method.draft_method = &make_eagle;
  method.tree = std::move(tree);
  method.verify.rule = rule_from(rule);
  method.verify.sampled = !top;
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
  method.draft_method = &make_jacobi;
  method.window = {keep, fill};
  return method;
}

// The window of SJD-PAC's official code.
inline Method official_window(const std::string& chain) {
  Method method = window_method(chain);
  method.draft_method = &make_sjd_pac_official;
  method.verify.rule = Rule::official_pac;
  return method;
}

// A window whose first positions the drafter fills.
inline Method front_method(const std::string& chain, std::int64_t front) {
  Method method = window_method(chain);
  method.window.front = front;
  method.window.make_front = &make_eagle_static;
  return method;
}

// The first layers of the target draft, and see the prompt and the newest `window` tokens of the image; 0:
// all.
inline Method self_method(Tree tree, std::int64_t layers, std::int64_t window = 0) {
  Method method = static_method(std::move(tree));
  method.draft_method = &make_self;
  method.options.draft_layers = layers;
  if (window > 0) method.options.draft_window = window;
  return method;
}

// Parallel rows, each `ahead` codes behind the one above it.
inline Method zipar_method(std::int64_t ahead, bool zero_rows = false) {
  Method method;
  method.draft_method = &make_zipar;
  method.tree.reset();
  method.options.ahead = ahead;
  if (zero_rows) method.options.zipar = "official";
  return method;
}

// The same with a window in every row, whose drafts see the drafts of other rows or not.
inline Method row_windows(std::int64_t ahead, std::int64_t window, bool sees_other_drafts = false,
                          WindowFill fill = WindowFill::repeat, bool keep = true) {
  Method method;
  method.draft_method = sees_other_drafts ? &make_pjd : &make_zipar_sjd;
  method.tree.reset();
  method.window = {keep, fill};
  method.options.ahead = ahead;
  method.row_window = window;
  return method;
}

inline Method dynamic_method(std::int64_t passes, std::int64_t width, std::int64_t nodes) {
  Method method;
  method.draft_method = &make_eagle;
  method.tree.reset();
  method.options.dynamic_depth = passes;
  method.options.dynamic_width = width;
  method.options.dynamic_nodes = nodes;
  method.verify.sampled = false;
  return method;
}

// Drafts of a size by position in the image.
inline Method adapting(Method method) {
  method.adapts = true;
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
  method.verify.numbers = numbers_of(method.verify.rule, {bound});
  method.verify.k = k;
  method.verify.neighbours = neighbours;
  return method;
}

// Two children of the root, three of theirs, and one below.
inline Tree bushy_tree() {
  return make_tree({{0}, {1}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}});
}

// Whether images take different numbers of cycles.
inline bool drafts(const Method& method) {
  if (method.draft_method == &make_zipar) return false;
  return !method.tree || method.tree->drafted() > 0;
}

}  // namespace lamplighter::test
