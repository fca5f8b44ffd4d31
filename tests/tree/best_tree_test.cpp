#include "tree/tune.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/tree/shapes.h"

namespace lamplighter {
namespace {

TEST(TuneTest, CountsAllSmallTrees) {
  // The number of ordered trees of n nodes is a Catalan number: 1, 1, 2, 5, 14, 42.
  EXPECT_EQ(all_trees(6).size(), 1U + 1 + 2 + 5 + 14 + 42);
}

TEST(TuneTest, ExpectedTokensOfAChainAndAStar) {
  const SiblingAcceptance acceptance{{0.5, 0.25}, {0.2, 0.1}};
  EXPECT_DOUBLE_EQ(expected_tokens(preset_tree("chain-0"), acceptance), 1);
  EXPECT_DOUBLE_EQ(expected_tokens(preset_tree("chain-3"), acceptance), 1 + 0.5 + 0.1 + 0.02);
  EXPECT_DOUBLE_EQ(expected_tokens(make_tree({{0}, {1}, {2}}), acceptance), 1.75);
}

TEST(TuneTest, FindsWhatTryingAllTreesFinds) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0, 1);
  const std::vector<Tree> trees = all_trees(6);
  for (int round = 0; round < 200; ++round) {
    SiblingAcceptance acceptance(1 + random() % 3);
    for (std::vector<double>& row : acceptance) {
      double left = 1;
      for (int rank = 0; rank < 3; ++rank) left -= row.emplace_back(left * uniform(random));
    }
    TreeCosts costs;
    for (int nodes = 1; nodes <= 6; ++nodes) {
      costs.target_pass.push_back(1 + (round % 2 == 0 ? 0.3 * uniform(random) : 0.02 * nodes));
    }
    costs.draft_level = 0.3 * uniform(random);
    costs.cycle = 0.1 * uniform(random);
    const std::int64_t max_depth = 1 + static_cast<std::int64_t>(random() % 5);

    double most = 0;
    for (const Tree& tree : trees) {
      if (tree.max_depth() > max_depth) continue;
      most = std::max(most, expected_tokens(tree, acceptance) / cycle_time(tree, costs));
    }
    const TunedTree best = best_tree(acceptance, costs, max_depth);
    EXPECT_NEAR(best.tokens / best.time, most, 1e-12) << round;
    EXPECT_NEAR(best.tokens, expected_tokens(best.tree, acceptance), 1e-12) << round;
    EXPECT_DOUBLE_EQ(best.time, cycle_time(best.tree, costs)) << round;
    EXPECT_LE(best.tree.max_depth(), max_depth);
  }
}

TEST(TuneTest, FreeNodesAreAllTakenAndDearOnesLeftOut) {
  const SiblingAcceptance acceptance{{0.6, 0.2, 0.1}};
  EXPECT_EQ(best_tree(acceptance, {std::vector<double>(64, 1.0), 0, 0}, 8).tree.size(), 64);
  EXPECT_EQ(best_tree(acceptance, {{1, 3}, 0, 0}, 8).tree.size(), 1);
  EXPECT_EQ(best_tree(acceptance, {{1, 1.2, 5}, 0, 0}, 8).tree.size(), 2);
  EXPECT_EQ(best_tree({}, {{1, 1, 1}, 0, 0}, 8).tree.size(), 1);
}

TEST(TuneTest, RejectsNonsense) {
  EXPECT_THROW(best_tree({{0.8, 0.4}}, {{1, 1}, 0, 0}, 2), Error);
  EXPECT_THROW(best_tree({{-0.1}}, {{1, 1}, 0, 0}, 2), Error);
  EXPECT_THROW(best_tree({{0.5}}, {{}, 0, 0}, 2), Error);
  EXPECT_THROW(best_tree({{0.5}}, {{1, 0}, 0, 0}, 2), Error);
  EXPECT_THROW(best_tree({{0.5}}, {{1, 1}, -1, 0}, 2), Error);
  EXPECT_THROW(best_tree({{0.5}}, {{1, 1}, 0, 0}, -1), Error);
}

}  // namespace
}  // namespace lamplighter
