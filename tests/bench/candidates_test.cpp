#include "bench/candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::vector<std::string> names(const std::string& method, const CandidateBounds& bounds) {
  std::vector<std::string> names;
  for (const BenchMethod& candidate : tuning_candidates(method, bounds)) names.push_back(candidate.name);
  return names;
}

TEST(RowDistances, AreDoubledUpToHalfOfARow) {
  EXPECT_THAT(row_distances(16), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(row_distances(45), ElementsAre(1, 2, 4, 8, 16, 22));
  EXPECT_THAT(row_distances(1), ElementsAre(1));
  EXPECT_THAT(row_distances(3), ElementsAre(1));
}

TEST(RowDistances, BeginWithTheLeast) {
  EXPECT_THAT(row_distances(16, 2), ElementsAre(2, 4, 8));
  EXPECT_THAT(row_distances(45, 5), ElementsAre(5, 8, 16, 22));
  EXPECT_THAT(row_distances(16, 8), ElementsAre(8));
  EXPECT_THAT(error_of(ExitCode::usage, [] { row_distances(16, 9); }),
              HasSubstr("got 9, expected 1 to 8, half of a row"));
  EXPECT_THAT(error_of(ExitCode::usage, [] { row_distances(16, 0); }), HasSubstr("got 0, expected 1 to 8"));
}

TEST(TuningCandidates, OfAWindowAreItsLengths) {
  EXPECT_THAT(names("sjd:init=above", {2, 16}),
              ElementsAre("ar", "sjd:init=above:tree=chain-1", "sjd:init=above:tree=chain-2"));
  EXPECT_THAT(names("sjd-pac", {6, 16}), IsSupersetOf({"ar", "sjd-pac:tree=chain-6", "sjd-pac:tree=fan-2-1-5",
                                                       "sjd-pac:tree=fan-2-2-2"}));
}

TEST(TuningCandidates, OfRowsAreTheirDistances) {
  EXPECT_THAT(names("zipar", {8, 8}), ElementsAre("ar", "zipar:ahead=1", "zipar:ahead=2", "zipar:ahead=4"));
  EXPECT_THAT(names("zipar:zipar=official", {8, 8, 4}), ElementsAre("ar", "zipar:zipar=official:ahead=4"));
  EXPECT_THAT(error_of(ExitCode::usage,
                       [] {
                         tuning_candidates("zipar:ahead=2", {8, 8});
                       }),
              HasSubstr("--ahead N is the least"));
}

TEST(TuningCandidates, OfRowsWithWindowsAreBothAndRowsAlone) {
  EXPECT_THAT(names("pjd", {1, 4}), ElementsAre("ar", "zipar:ahead=1", "pjd:ahead=1:tree=chain-1",
                                                "zipar:ahead=2", "pjd:ahead=2:tree=chain-1"));
  EXPECT_THAT(names("zipar+sjd:init=above", {2, 16, 3}),
              ElementsAre("ar", "zipar:ahead=3", "zipar+sjd:init=above:ahead=3:tree=chain-1",
                          "zipar+sjd:init=above:ahead=3:tree=chain-2"));
  EXPECT_THAT(names("zipar+sjd:ahead=6", {1, 16}),
              ElementsAre("ar", "zipar:ahead=6", "zipar+sjd:ahead=6:tree=chain-1"));
  EXPECT_THAT(error_of(ExitCode::usage,
                       [] {
                         tuning_candidates("pjd:ahead=6", {1, 16, 2});
                       }),
              HasSubstr("ahead: got 2 and 6 in 'pjd:ahead=6', expected one"));
  const MethodOptions window = tuning_candidates("pjd", {1, 4}).back().options;
  EXPECT_EQ(window.method, "pjd");
  EXPECT_EQ(window.ahead, 2);
  EXPECT_EQ(window.tree, "chain-1");
}

}  // namespace
}  // namespace lamplighter
