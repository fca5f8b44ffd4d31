#include "tree/open_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace lamplighter {
namespace {

std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Every place is decided once, by a row that runs the place before it.
void expect_complete(const OpenRows& plan, std::int64_t places) {
  std::vector<std::int64_t> sorted = plan.order, all(static_cast<std::size_t>(places));
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  std::vector<std::int64_t> decided{0};
  for (const OpenRows::Pass& pass : plan.passes) {
    for (const OpenRows::Row& row : pass) {
      if (row.decides) decided.push_back(row.place + 1);
    }
  }
  EXPECT_EQ(decided, plan.order);
}

// What is run is there, and is the place's own code or stands in for a row's end, which is run once more in
// the pass after the one that decides it.
void expect_codes(const OpenRows& plan, std::int64_t columns) {
  std::int64_t known = 1;
  std::set<std::int64_t> stand_ins, decided{0}, before;
  for (const OpenRows::Pass& pass : plan.passes) {
    std::set<std::int64_t> due;
    for (const std::int64_t place : stand_ins) {
      if (decided.count(place) != 0) due.insert(place);
    }
    std::int64_t last = -1;
    for (const OpenRows::Row& row : pass) {
      EXPECT_LT(row.code, known);
      const std::int64_t place = plan.order[static_cast<std::size_t>(row.code)];
      if (row.decides) {
        EXPECT_GT(row.place, last) << "from the top down";
        last = row.place;
      } else {
        EXPECT_EQ(place, row.place);
        EXPECT_EQ(due.erase(row.place), 1U);
        EXPECT_EQ(stand_ins.erase(row.place), 1U);
      }
      if (place == row.place) continue;
      EXPECT_EQ(row.place % columns, columns - 1) << "only a row's end has a stand-in";
      EXPECT_EQ(place / columns, row.place / columns - 1) << "of the row above";
      stand_ins.insert(row.place);
    }
    EXPECT_TRUE(due.empty());
    for (const OpenRows::Row& row : pass) {
      if (row.decides) decided.insert(row.place + 1);
    }
    known += static_cast<std::int64_t>(pass.size()) - (pass.back().decides ? 0 : 1);
  }
  EXPECT_TRUE(stand_ins.empty());
}

TEST(OpenRows, DecideEveryPlaceOnce) {
  for (const std::int64_t rows : {1, 2, 3, 5, 8}) {
    for (const std::int64_t columns : {1, 2, 3, 6, 9}) {
      for (std::int64_t ahead = 1; ahead <= columns + 1; ++ahead) {
        SCOPED_TRACE(::testing::Message() << rows << " x " << columns << ", ahead " << ahead);
        const OpenRows plan = open_rows(rows, columns, ahead);
        expect_complete(plan, rows * columns);
        expect_codes(plan, columns);
        const std::int64_t lag = std::min(ahead, columns);
        const std::int64_t passes = rows == 1 ? columns : 2 * columns + (rows - 2) * lag;
        EXPECT_EQ(static_cast<std::int64_t>(plan.passes.size()) + 1, passes);
        EXPECT_LE(plan.widest(), ceil_of(columns, lag) + 1);
        EXPECT_EQ(plan.again(), lag < columns ? std::max<std::int64_t>(0, rows - 2) : 0);
      }
    }
  }
}

TEST(OpenRows, AreInRasterOrderOneByOne) {
  const OpenRows plan = open_rows(4, 5, 5);
  EXPECT_TRUE(std::is_sorted(plan.order.begin(), plan.order.end()));
  EXPECT_EQ(plan.widest(), 1);
}

// Row 2 opens when row 1 has two codes. Its first code follows row 1's end, for which row 0's end stands in.
TEST(OpenRows, OpenAsPublished) {
  const OpenRows plan = open_rows(3, 4, 2);
  const OpenRows::Pass& opens = plan.passes[5];
  ASSERT_EQ(opens.size(), 2U);
  EXPECT_EQ(opens[0].place, 5);
  EXPECT_EQ(opens[1].place, 7);
  EXPECT_EQ(plan.order[static_cast<std::size_t>(opens[1].code)], 3);
  const OpenRows::Pass& again = plan.passes[7];  // row 1 is complete
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].place, 9);
  EXPECT_EQ(again[1].place, 7);
  EXPECT_FALSE(again[1].decides);
}

}  // namespace
}  // namespace lamplighter
