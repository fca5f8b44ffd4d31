#pragma once

#include <cstdint>
#include <vector>

#include "tree/tree.h"

namespace lamplighter {

// acceptance[d - 1][b]: probability that the b-th sibling at depth d is the one accepted, given that its
// parent was. The last row holds for deeper nodes too; siblings beyond a row are never accepted.
using SiblingAcceptance = std::vector<std::vector<double>>;

// Times in one unit of the caller's choice.
struct TreeCosts {
  std::vector<double> target_pass;  // entry n - 1: a target pass over n nodes, the root included
  double draft_level = 0;           // one pass of the drafter; a tree of depth d takes d
  double cycle = 0;                 // everything else of a cycle that drafts
};

struct TunedTree {
  Tree tree;
  double tokens = 0;  // expected tokens per cycle, the final one included
  double time = 0;    // of a cycle
};

// Accepted nodes per cycle plus the final token.
double expected_tokens(const Tree& tree, const SiblingAcceptance& acceptance);

double cycle_time(const Tree& tree, const TreeCosts& costs);

// The tree of at most costs.target_pass.size() nodes and depth max_depth with the most expected tokens per
// unit of time (the dynamic programme of Sequoia, Chen et al. 2024, over node count, depth and children; here
// with acceptance by depth). Equal trees: the one with fewer nodes, then the shallower. Throws Error(usage)
// unless the costs are positive, the probabilities lie in 0 .. 1 and siblings' add up to at most 1.
TunedTree best_tree(const SiblingAcceptance& acceptance, const TreeCosts& costs, std::int64_t max_depth);

}  // namespace lamplighter
