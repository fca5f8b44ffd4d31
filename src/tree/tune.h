#pragma once

#include <cstdint>
#include <vector>

#include "tree/tree.h"

namespace lamplighter {

// acceptance[d - 1][b]: probability that the b-th sibling at depth d is accepted, given its parent was. The
// last row also holds for deeper nodes. Siblings beyond a row are never accepted.
using SiblingAcceptance = std::vector<std::vector<double>>;

// Times in any common unit.
struct TreeCosts {
  std::vector<double> target_pass;  // entry n - 1: a target pass over n nodes, the root included
  double draft_level = 0;           // one pass of the draft model; a tree of depth d needs d passes
  double cycle = 0;                 // the rest of a cycle that drafts
};

struct TunedTree {
  Tree tree;
  double tokens = 0;  // expected tokens per cycle, final token included
  double time = 0;    // per cycle
};

// Expected accepted nodes per cycle plus the final token.
double expected_tokens(const Tree& tree, const SiblingAcceptance& acceptance);

double cycle_time(const Tree& tree, const TreeCosts& costs);

// Finds the tree with at most costs.target_pass.size() nodes and depth max_depth that yields the most tokens
// per time, by the dynamic programme of Sequoia (Chen et al. 2024) over node count, depth and children, here
// with acceptance by depth. Ties go to fewer nodes, then to the shallower tree. Throws Error(usage) unless
// costs are positive, probabilities are in 0 .. 1 and siblings' add up to at most 1.
TunedTree best_tree(const SiblingAcceptance& acceptance, const TreeCosts& costs, std::int64_t max_depth);

}  // namespace lamplighter
