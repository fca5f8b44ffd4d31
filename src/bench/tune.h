#pragma once

#include <cstdint>
#include <vector>

#include "bench/cycles.h"
#include "bench/report/statistics.h"
#include "lamplighter/pipeline.h"
#include "tree/tune.h"

namespace lamplighter {

// What a tree is chosen from: how often which child is accepted, and what passes cost on this machine.

// A tree that shows acceptance by depth and sibling rank within 63 nodes: wide near the root, and below the
// first children eight deep, or as deep as the drafter goes. Whether a node has children, and how many,
// follows from its depth and rank.
Tree survey_tree(std::int64_t deepest = 8);

// Trees of 0 .. nodes drafted nodes, whose costs are measured: chains, and where those would be deeper than
// the drafter goes, such chains with more children of the root.
std::vector<Tree> cost_trees(std::int64_t nodes, std::int64_t deepest);

// Acceptance from runs with `survey`: how often the child of each rank led on, given that its parent was
// reached and has children. Depths that were seen in fewer than `least` cycles are left out.
SiblingAcceptance measured_acceptance(const Tree& survey, const std::vector<Statistics>& pictures,
                                      std::int64_t least = 50);

// Expected tokens per cycle with `tree`, by the acceptance of each picture alone.
Interval tokens_by_picture(const Tree& tree, const Tree& survey, const std::vector<Statistics>& pictures);

// Costs in milliseconds from rounds of the trees of cost_trees(): scoring, judging and commit by rows; a
// drafter level and the rest of drafting as slope and offset of its time over the depth. More rows never cost
// less: what says so is noise.
TreeCosts measured_costs(const std::vector<CycleRounds>& trees, std::int64_t deepest = kMaxTreeNodes - 1);

}  // namespace lamplighter
