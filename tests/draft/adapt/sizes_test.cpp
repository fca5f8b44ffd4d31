#include "draft/adapt/sizes.h"

#include <gtest/gtest.h>

#include <vector>

namespace lamplighter::test {
namespace {

using Notes = std::vector<PositionNote>;

// Two rows of five positions behind a preview of two rows of three.
constexpr Neighbourhood kGrid{16, 5, 6, 3};

TEST(Neighbourhood, EndsAtTheSidesOfItsGrid) {
  EXPECT_EQ(kGrid.left(4), 3);
  EXPECT_EQ(kGrid.left(3), std::nullopt);           // begins the preview's second row
  EXPECT_EQ(kGrid.beside(4, -1, 0), 1);             // above in the preview
  EXPECT_EQ(kGrid.beside(4, -1, 1), 2);             // above to the right
  EXPECT_EQ(kGrid.beside(5, -1, 1), std::nullopt);  // right of the preview
  EXPECT_EQ(kGrid.beside(8, -1, 0), std::nullopt);  // in the image's first row: not in the preview
  EXPECT_EQ(kGrid.beside(11, -1, 0), 6);
  EXPECT_EQ(kGrid.beside(11, -1, -1), std::nullopt);
  EXPECT_EQ(kGrid.beside(5, 1, 0), std::nullopt);  // below the preview
}

// What a cycle tells a rule, and the size that the next draft then has.
struct Transition {
  std::int64_t last, depth, accepted;
  DraftSize next;
};

void expect_transitions(const SizeRule& rule, Notes& notes, const std::vector<Transition>& cycles) {
  for (const Transition& cycle : cycles) {
    rule.learn(notes.data(), cycle.last, cycle.depth, cycle.accepted);
    EXPECT_EQ(rule.next(notes.data(), cycle.last + cycle.accepted + 1), cycle.next)
        << "behind position " << cycle.last;
  }
}

constexpr DraftSize kLeast{1, 1}, kMost{9, 8};

TEST(BisectedSizes, GoHalfWayDeeperOrWider) {
  const auto rule = bisected_sizes({100, 50}, kLeast, kMost);
  Notes notes(100);
  EXPECT_EQ(rule->next(notes.data(), 0), kMost);
  expect_transitions(*rule, notes,
                     {{0, 9, 0, {5, 8}},     // hard: shallow; no wider than it may be
                      {1, 5, 2, {3, 8}},     // two of five are less than half
                      {4, 3, 2, {6, 4}},     // easy: half-way to the deepest, narrower
                      {7, 6, 3, {3, 6}},     // half is not more than half
                      {11, 3, 3, {6, 3}},    // ..
                      {15, 6, 6, {8, 2}},    // rounded towards the goal
                      {22, 8, 8, {9, 1}},    // which is reached
                      {31, 9, 9, {9, 1}},    // and kept
                      {41, 9, 0, {5, 5}}});  // one cycle leads back
}

TEST(BisectedSizes, RowsBeginWithTheSizeOfThePositionAbove) {
  const auto rule = bisected_sizes({12, 4}, kLeast, kMost);
  Notes notes(12);
  rule->learn(notes.data(), 0, 9, 0);             // position 1 is hard
  rule->learn(notes.data(), 1, 5, 0);             // 2 more so
  rule->learn(notes.data(), 2, 3, 0);             // 3 most
  EXPECT_EQ(rule->next(notes.data(), 3), kMost);  // nothing is known of position 0
  rule->learn(notes.data(), 3, 9, 0);
  rule->learn(notes.data(), 4, 5, 2);
  EXPECT_EQ(rule->next(notes.data(), 6), (DraftSize{3, 8}));  // of position 6, to the left
  EXPECT_EQ(rule->next(notes.data(), 7), (DraftSize{5, 8}));  // of position 4, above
}

TEST(BisectedSizes, OfACompleteImageAreTheLeast) {
  const auto rule = bisected_sizes({4, 2}, kLeast, kMost);
  Notes notes(4);
  EXPECT_EQ(rule->next(notes.data(), 3), kLeast);
  rule->learn(notes.data(), 2, 9, 9);  // longer than what was left
  EXPECT_EQ(notes[3][0], 9);
}

TEST(BisectedSizes, LearnNothingWhereNothingWasDrafted) {
  const auto rule = bisected_sizes({4, 2}, kLeast, kMost);
  Notes notes(4);
  rule->learn(notes.data(), 0, 0, 0);
  EXPECT_EQ(notes, Notes(4));
}

TEST(ExpectedLengths, AreTwiceTheTokensOfTheCyclesBesideAndAbove) {
  const auto rule = expected_lengths({24, 8}, {1, 1}, {9, 1});
  Notes notes(24);
  EXPECT_EQ(rule->next(notes.data(), 0).depth, 9);  // nothing is known
  expect_transitions(*rule, notes,
                     {{0, 9, 3, {8, 1}},    // four tokens, at positions 1 .. 4
                      {4, 8, 0, {2, 1}},    // one, at position 5
                      {5, 2, 2, {8, 1}},    // three; 3 and above 4, 4, 4, 4: 19 in five cycles
                      {8, 8, 0, {6, 1}},    // one; 1 and above 4, 4, 4, 1: 14 in five cycles
                      {9, 6, 3, {7, 1}}});  // four; 4 and above 3, 3, where the row ends: 10 in three
  EXPECT_EQ(notes[8], (PositionNote{1, 2}));
  EXPECT_EQ(notes[14], (PositionNote{0, 0}));
}

TEST(ExpectedLengths, EndWithTheImage) {
  const auto rule = expected_lengths({12, 6}, {1, 1}, {5, 1});
  Notes notes(12);
  EXPECT_EQ(rule->next(notes.data(), 11).depth, 1);
  rule->learn(notes.data(), 9, 5, 5);  // more than are left
  EXPECT_EQ(notes[11], (PositionNote{1, 5}));
  rule->learn(notes.data(), 0, 0, 0);  // nothing was drafted
  EXPECT_EQ(notes[1], (PositionNote{0, 0}));
}

}  // namespace
}  // namespace lamplighter::test
