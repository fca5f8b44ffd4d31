#include "measure/tune.h"

#include <gtest/gtest.h>

namespace lamplighter {
namespace {

TEST(SurveyTree, ShowsEightDepthsAndDecidesByDepthAndRank) {
  const Tree tree = survey_tree();
  EXPECT_LE(tree.drafted(), 63);
  EXPECT_EQ(tree.max_depth(), 8);
  EXPECT_EQ(tree.child_count(0), 4);
  for (std::int64_t depth = 1; depth < tree.max_depth(); ++depth) {
    for (const std::int64_t one : tree.level(depth)) {
      for (const std::int64_t other : tree.level(depth)) {
        const auto a = static_cast<std::size_t>(one), b = static_cast<std::size_t>(other);
        if (tree.rank[a] != tree.rank[b]) continue;
        EXPECT_EQ(tree.child_count(one), tree.child_count(other));
      }
    }
  }
}

TEST(SurveyTree, GoesAsDeepAsADrafterGuesses) {
  for (const std::int64_t deepest : {1, 3, 8}) EXPECT_EQ(survey_tree(deepest).max_depth(), deepest);
  EXPECT_EQ(survey_tree(63).size(), survey_tree().size());
}

TEST(CostTrees, HaveEverySizeAndNoMoreThanTheDepth) {
  const std::vector<Tree> trees = cost_trees(5, 3);
  ASSERT_EQ(trees.size(), 6U);
  for (std::size_t nodes = 0; nodes < trees.size(); ++nodes) {
    EXPECT_EQ(trees[nodes].drafted(), static_cast<std::int64_t>(nodes));
    EXPECT_EQ(trees[nodes].max_depth(), std::min<std::int64_t>(static_cast<std::int64_t>(nodes), 3));
  }
  EXPECT_EQ(trees.back().child_count(0), 3);
}

Statistics survey_of(std::size_t cycles, std::vector<std::vector<std::int64_t>> reached) {
  Statistics statistics;
  statistics.cycles.resize(cycles);
  statistics.reached = std::move(reached);
  return statistics;
}

TEST(MeasuredAcceptance, IsGivenThatTheParentCouldLeadOn) {
  const Tree tree = make_tree({{0}, {1}, {0, 0}, {0, 1}});
  // 100 cycles in two images: 60 accepted the first child, 20 the second, which has no children.
  const SiblingAcceptance acceptance =
      measured_acceptance(tree, {survey_of(40, {{20, 10}, {10, 0}}), survey_of(60, {{40, 10}, {20, 6}})}, 50);
  ASSERT_EQ(acceptance.size(), 2U);
  EXPECT_DOUBLE_EQ(acceptance[0][0], 0.6);
  EXPECT_DOUBLE_EQ(acceptance[0][1], 0.2);
  EXPECT_DOUBLE_EQ(acceptance[1][0], 0.5);
  EXPECT_DOUBLE_EQ(acceptance[1][1], 0.1);
  // Depth 2 was reached only 60 times.
  EXPECT_EQ(measured_acceptance(tree, {survey_of(100, {{60, 20}, {30, 6}})}, 61).size(), 1U);
  EXPECT_TRUE(measured_acceptance(tree, {}, 50).empty());
}

TEST(MeasuredCosts, SeparateLevelsFromTheRest) {
  const auto chain = [](double draft, double verify) { return CycleRounds(3, {draft, verify, 0.5, 0.25}); };
  const TreeCosts costs = measured_costs({chain(0, 10), chain(3, 11), chain(5, 10.5), chain(7, 13)});
  EXPECT_EQ(costs.target_pass, (std::vector<double>{10.75, 11.75, 11.75, 13.75}));
  EXPECT_NEAR(costs.draft_level, 2, 1e-12);
  EXPECT_NEAR(costs.cycle, 1, 1e-12);
}

TEST(MeasuredCosts, CountLevelsNotNodes) {
  const auto tree = [](double draft) { return CycleRounds(3, {draft, 10, 0.5, 0.25}); };
  const TreeCosts costs = measured_costs({tree(0), tree(3), tree(5), tree(5), tree(5)}, 2);
  EXPECT_NEAR(costs.draft_level, 2, 1e-12);
  EXPECT_NEAR(costs.cycle, 1, 1e-12);
}

TEST(MeasuredCosts, MediansIgnoreASlowSpell) {
  const CycleRounds spell{{0, 10, 0, 0}, {0, 90, 0, 0}, {0, 10, 0, 0}};
  EXPECT_DOUBLE_EQ(measured_costs({spell}).target_pass.front(), 10);
}

}  // namespace
}  // namespace lamplighter
