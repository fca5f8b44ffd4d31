#pragma once

#include <cstdint>
#include <vector>

#include "lamplighter/pipeline.h"
#include "measure/cycles.h"
#include "measure/statistics.h"
#include "tree/tune.h"

namespace lamplighter {

// Measurements from which best_tree chooses: acceptance of every child, and costs of passes on this machine.

// A tree that shows acceptance by depth and sibling rank within 63 nodes: wide near the root, and below the
// first children eight deep, or as deep as the draft model allows. The number of children depends only on
// depth and rank.
Tree survey_tree(std::int64_t deepest = 8);

// Trees of 0 .. nodes drafted nodes whose costs are measured: chains, or chains with more children of the
// root where a chain would be deeper than the draft model allows.
std::vector<Tree> cost_trees(std::int64_t nodes, std::int64_t deepest);

// Acceptance from runs with `survey`: how often the child of each rank was accepted when its parent was and
// has children. Omits depths reached in fewer than `least` cycles.
SiblingAcceptance measured_acceptance(const Tree& survey, const std::vector<Statistics>& images,
                                      std::int64_t least = 50);

// Expected tokens per cycle with `tree`, from the acceptance of each image alone.
Interval tokens_by_image(const Tree& tree, const Tree& survey, const std::vector<Statistics>& images);

// Costs in milliseconds from rounds of the trees of cost_trees(): scoring, verification and commit by number
// of nodes; level and rest of drafting as slope and offset of its time over depth. Costs are made monotonic,
// because a decrease with more nodes is noise.
TreeCosts measured_costs(const std::vector<CycleRounds>& trees, std::int64_t deepest = kMaxTreeNodes - 1);

}  // namespace lamplighter
