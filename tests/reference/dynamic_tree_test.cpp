#include "tests/reference/dynamic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lamplighter/error.h"

namespace lamplighter::reference {
namespace {

using testing::ElementsAre;

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

TEST(DynamicTest, ExpandsEverySlotAndPicksTheBestCandidates) {
  const Expansion expansion = expand_dynamic({{0.1, 0.6, 0.3}, {0.5, 0.0, 0.5}}, {std::log(0.5), 0}, 2);
  EXPECT_THAT(expansion.tokens, ElementsAre(1, 2, 0, 2));
  EXPECT_THAT(expansion.frontier, ElementsAre(2, 3));
  EXPECT_DOUBLE_EQ(expansion.scores[0], std::log(0.6) + std::log(0.5));
  EXPECT_DOUBLE_EQ(expansion.scores[3], std::log(0.5));
}

TEST(DynamicTest, EqualScoresGoToTheSmallerIndex) {
  const std::vector<double> flat(4, 0.25);
  const Expansion expansion = expand_dynamic({flat, flat}, {0, 0}, 3);
  EXPECT_THAT(expansion.tokens, ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(expansion.frontier, ElementsAre(0, 1, 2));
}

TEST(DynamicTest, ProbabilityZeroIsAnImpossibleScore) {
  const Expansion expansion = expand_dynamic({{0, 0, 1, 0}}, {0}, 3);
  EXPECT_THAT(expansion.tokens, ElementsAre(2, 0, 1));
  EXPECT_THAT(expansion.scores, ElementsAre(0, kImpossible, kImpossible));
}

TEST(DynamicTest, KeepsTheBestNodesInPoolOrder) {
  // Width 2: candidates 0, 1 of the root; 2..5 of candidates 0, 1; 6..9 of candidates 5, 2 (indices 3, 0).
  const std::vector<std::int64_t> tokens{10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  const std::vector<double> scores{-1, -2, -4, -9, -8, -3, -3.5, -9, -4.5, -9};
  const DynamicTree tree = rerank_dynamic(tokens, scores, {{0, 1}, {3, 0}}, 2, 6);
  EXPECT_THAT(tree.pool_index, ElementsAre(0, 1, 2, 5, 6, 8));
  EXPECT_THAT(tree.tokens, ElementsAre(0, 10, 11, 12, 15, 16, 18));
  EXPECT_THAT(tree.parents, ElementsAre(-1, 0, 0, 1, 2, 4, 3));
  EXPECT_THAT(tree.depths, ElementsAre(0, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(tree.ancestors, ElementsAre(1, 3, 5, 11, 21, 53, 75));
}

TEST(DynamicTest, TiesKeepParentsBeforeChildren) {
  const DynamicTree tree = rerank_dynamic({1, 2, 3, 4, 5, 6}, {0, 0, 0, 0, 0, 0}, {{0, 1}}, 2, 3);
  EXPECT_THAT(tree.pool_index, ElementsAre(0, 1, 2));
}

TEST(DynamicTest, LeavesOutImpossibleNodes) {
  const DynamicTree tree = rerank_dynamic({4, 5}, {-1, kImpossible}, {}, 2, 2);
  EXPECT_THAT(tree.tokens, ElementsAre(0, 4));
}

TEST(DynamicTest, RejectsSizesThatDoNotFit) {
  EXPECT_THROW(expand_dynamic({{0.5, 0.5}}, {0}, 3), Error);
  EXPECT_THROW(expand_dynamic({{0.5, 0.5}}, {0, 0}, 1), Error);
  EXPECT_THROW(rerank_dynamic({1, 2, 3}, {0, 0, 0}, {}, 2, 1), Error);
  EXPECT_THROW(rerank_dynamic({1, 2}, {0, 0}, {}, 2, 3), Error);
}

}  // namespace
}  // namespace lamplighter::reference
