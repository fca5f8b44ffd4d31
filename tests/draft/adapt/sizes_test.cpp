#include "draft/adapt/sizes.h"

#include <gtest/gtest.h>

#include <vector>

namespace lamplighter::test {
namespace {

using Notes = std::vector<PlaceNote>;

// Two rows of five places behind a preview of two rows of three.
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
        << "behind place " << cycle.last;
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

TEST(BisectedSizes, RowsBeginWithTheSizeOfThePlaceAbove) {
  const auto rule = bisected_sizes({12, 4}, kLeast, kMost);
  Notes notes(12);
  rule->learn(notes.data(), 0, 9, 0);             // place 1 is hard
  rule->learn(notes.data(), 1, 5, 0);             // 2 more so
  rule->learn(notes.data(), 2, 3, 0);             // 3 most
  EXPECT_EQ(rule->next(notes.data(), 3), kMost);  // nothing is known of place 0
  rule->learn(notes.data(), 3, 9, 0);
  rule->learn(notes.data(), 4, 5, 2);
  EXPECT_EQ(rule->next(notes.data(), 6), (DraftSize{3, 8}));  // of place 6, to the left
  EXPECT_EQ(rule->next(notes.data(), 7), (DraftSize{5, 8}));  // of place 4, above
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

TEST(ExpectedLengths, NoteWhichDraftsWereVerified) {
  const auto rule = expected_lengths({12, 6}, {1, 1}, {5, 1});
  Notes notes(12);
  rule->learn(notes.data(), 0, 5, 2);  // places 1 and 2 accepted, 3 refused
  rule->learn(notes.data(), 3, 2, 2);  // 4 and 5 accepted, none drafted for 6
  rule->learn(notes.data(), 9, 5, 5);  // ends with the image
  EXPECT_EQ(
      notes,
      (Notes{
          {0, 0}, {1, 1}, {1, 1}, {1, 0}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 1}, {1, 1}}));
}

TEST(ExpectedLengths, FollowWhatIsAboveAndInFront) {
  const auto rule = expected_lengths({24, 8}, {1, 1}, {5, 1});
  Notes notes(24);
  EXPECT_EQ(rule->next(notes.data(), 0).depth, 5);   // nothing is known
  EXPECT_EQ(rule->next(notes.data(), 21).depth, 2);  // two places are left
  // Places 0 .. 3 of the first row were accepted, 4 .. 7 refused.
  for (std::size_t place = 0; place < 8; ++place) notes[place] = {1, place < 4 ? 1 : 0};
  // Below, place by place: 1, 1, 1, then 3/4, 2/4 and 1/4.
  EXPECT_EQ(rule->next(notes.data(), 7).depth, 5);
  EXPECT_EQ(rule->next(notes.data(), 9).depth, 3);   // 3/4 * 1/2 = 0.375, then 0.094
  EXPECT_EQ(rule->next(notes.data(), 13).depth, 1);  // never less than the least
  EXPECT_EQ(rule->next(notes.data(), 11).depth, 1);  // 1/2, then 0.125
  // Accepted places in front: 6/8, 5/8, 5/8, 5/7 and 1 with those of the next row.
  for (std::size_t place = 8; place < 12; ++place) notes[place] = {1, 1};
  EXPECT_EQ(rule->next(notes.data(), 11).depth, 5);
}

}  // namespace
}  // namespace lamplighter::test
