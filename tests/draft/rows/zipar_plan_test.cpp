#include "draft/rows/zipar_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace lamplighter {
namespace {

std::int64_t ceil_of(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Every position is decided once, by a query at the position before it.
void expect_complete(const ZiparPlan& plan, std::int64_t positions) {
  std::vector<std::int64_t> sorted = plan.order, all(static_cast<std::size_t>(positions));
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  std::vector<std::int64_t> decided{0};
  for (const ZiparPlan::Pass& pass : plan.passes) {
    for (const ZiparPlan::Query& query : pass) {
      if (query.decides) decided.push_back(query.position + 1);
    }
  }
  EXPECT_EQ(decided, plan.order);
}

// The code that runs is known. It is the position's own or a placeholder for a row's end, which is recomputed
// in the pass after the one that decides it.
void expect_codes(const ZiparPlan& plan, std::int64_t columns) {
  std::int64_t known = 1;
  std::set<std::int64_t> placeholders, decided{0}, before;
  for (const ZiparPlan::Pass& pass : plan.passes) {
    std::set<std::int64_t> due;
    for (const std::int64_t position : placeholders) {
      if (decided.count(position) != 0) due.insert(position);
    }
    std::int64_t last = -1;
    for (const ZiparPlan::Query& query : pass) {
      EXPECT_LT(query.code, known);
      const std::int64_t position = plan.order[static_cast<std::size_t>(query.code)];
      if (query.decides) {
        EXPECT_GT(query.position, last) << "from the top down";
        last = query.position;
      } else {
        EXPECT_EQ(position, query.position);
        EXPECT_EQ(due.erase(query.position), 1U);
        EXPECT_EQ(placeholders.erase(query.position), 1U);
      }
      if (position == query.position) continue;
      EXPECT_EQ(query.position % columns, columns - 1) << "only a row's end has a placeholder";
      EXPECT_EQ(position / columns, query.position / columns - 1) << "of the row above";
      placeholders.insert(query.position);
    }
    EXPECT_TRUE(due.empty());
    for (const ZiparPlan::Query& query : pass) {
      if (query.decides) decided.insert(query.position + 1);
    }
    known += static_cast<std::int64_t>(pass.size()) - (pass.back().decides ? 0 : 1);
  }
  EXPECT_TRUE(placeholders.empty());
}

TEST(ZiparPlan, DecidesEveryPositionOnce) {
  for (const std::int64_t rows : {1, 2, 3, 5, 8}) {
    for (const std::int64_t columns : {1, 2, 3, 6, 9}) {
      for (std::int64_t ahead = 1; ahead <= columns + 1; ++ahead) {
        SCOPED_TRACE(::testing::Message() << rows << " x " << columns << ", ahead " << ahead);
        const ZiparPlan plan = plan_zipar(rows, columns, ahead);
        expect_complete(plan, rows * columns);
        expect_codes(plan, columns);
        const std::int64_t lag = std::min(ahead, columns);
        const std::int64_t passes = rows == 1 ? columns : 2 * columns + (rows - 2) * lag;
        EXPECT_EQ(static_cast<std::int64_t>(plan.passes.size()) + 1, passes);
        EXPECT_LE(plan.widest(), ceil_of(columns, lag) + 1);
        EXPECT_EQ(plan.recomputed(), lag < columns ? std::max<std::int64_t>(0, rows - 2) : 0);
      }
    }
  }
}

TEST(ZiparPlan, IsInRasterOrderRowByRow) {
  const ZiparPlan plan = plan_zipar(4, 5, 5);
  EXPECT_TRUE(std::is_sorted(plan.order.begin(), plan.order.end()));
  EXPECT_EQ(plan.widest(), 1);
}

// Row 2 opens when row 1 has two codes. Its first code follows row 1's end, for which row 0's end is the
// placeholder.
TEST(ZiparPlan, OpensRowsAsThePaperDoes) {
  const ZiparPlan plan = plan_zipar(3, 4, 2);
  const ZiparPlan::Pass& opens = plan.passes[5];
  ASSERT_EQ(opens.size(), 2U);
  EXPECT_EQ(opens[0].position, 5);
  EXPECT_EQ(opens[1].position, 7);
  EXPECT_EQ(plan.order[static_cast<std::size_t>(opens[1].code)], 3);
  const ZiparPlan::Pass& recomputes = plan.passes[7];  // row 1 is complete
  ASSERT_EQ(recomputes.size(), 2U);
  EXPECT_EQ(recomputes[0].position, 9);
  EXPECT_EQ(recomputes[1].position, 7);
  EXPECT_FALSE(recomputes[1].decides);
}

}  // namespace
}  // namespace lamplighter
