#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "lamplighter/bundle.h"
#include "tree/tree.h"

namespace lamplighter {

// How the cycles of a run draft and accept. The default is autoregression: a tree of the root alone.
struct Method {
  Tree tree = preset_tree("chain-0");  // static trees
  struct {
    std::int64_t passes = 0;  // expansions after the first; 0: the tree is static
    std::int64_t width = 0;   // nodes expanded per level
    std::int64_t nodes = 0;   // drafted nodes kept
  } dynamic;
  bool conditional = false;  // guided pairs draft from their conditional half alone
  ops::JudgeOptions judge;   // the acceptance rule; tensors on the device of the run

  bool is_dynamic() const { return dynamic.passes > 0; }
  bool drafts() const { return is_dynamic() || tree.drafted() > 0; }
  std::int64_t nodes() const { return is_dynamic() ? dynamic.nodes + 1 : tree.size(); }  // with the root
  std::int64_t depth() const { return is_dynamic() ? dynamic.passes + 1 : tree.max_depth(); }
};

// The static tree where neither the user nor the bundle names one. On a device it is the largest preset whose
// target passes, 2 x batch x nodes rows with guidance, stay where reading the weights takes longer than
// multiplying them: 150 rows suit an A100, an H200 takes about 200. Wide batches get chains. On a CPU, where
// every row costs time, a short chain.
std::string default_tree(const std::string& device, std::int64_t batch);

// A method as resolve_method (lamplighter/pipeline.h) gives it, ready to run: trees parsed, tables on the
// device. `greedy`: the run is at temperature 0, where children are the most probable ones. Throws Error
// (input, bundle).
Method make_method(const MethodOptions& resolved, const Manifest& manifest, const c10::Device& device,
                   bool greedy);

// What does not change of trees, on a device: static ones level by level.
struct TreePlan {
  at::Tensor parents, draft_rows, depths;  // int64 [1, N]
  at::Tensor mask;                         // int64 [1, N, 1], empty for the root alone
  // An index that would select everything in order is undefined.
  struct Level {
    at::Tensor nodes, depths;  // int64 [W] and [1, W], the nodes of a depth that have children
    std::int64_t draws = 0;    // most children of one of them
    at::Tensor picks;          // int64 [C]: which of W * draws drawn tokens are their C children
    // Those of the children that have children themselves; none at the last level.
    std::int64_t next_count = 0;  // W'
    at::Tensor next;              // int64 [W'], of the C children
    at::Tensor parent_rows;       // int64 [W'], of this level's W rows
    at::Tensor next_mask;         // int64 [1, W', 1], ancestors among the rows the drafter has run
  };
  std::vector<Level> levels;
  // For passes of the drafter below the root, P of them, of static and dynamic trees:
  at::Tensor rows_before;  // int64 [P, 2, 1]: 0, and the rows that it has run before
  at::Tensor own_bits;     // int64 [P, width], where the rows of a dynamic pass see themselves
};
TreePlan make_plan(const Method& method, const c10::Device& device);

}  // namespace lamplighter
