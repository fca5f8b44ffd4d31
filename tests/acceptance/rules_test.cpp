#include "acceptance/rules.h"

#include <gtest/gtest.h>

#include "lamplighter/error.h"

namespace lamplighter {
namespace {

TEST(RulesTest, NamesGoBothWays) {
  for (const char* name : {"exact", "lantern", "lantern++", "traversal", "block", "official-pac"}) {
    EXPECT_EQ(to_string(rule_from(name)), name);
  }
  for (const char* name : {"paper", "optimal", "official-static", "official-dynamic",
                           "official-lumina-static", "official-lumina-dynamic"}) {
    EXPECT_EQ(to_string(residual_from(name)), name);
  }
  EXPECT_THROW(rule_from("strict"), Error);
  EXPECT_THROW(residual_from(""), Error);
}

}  // namespace
}  // namespace lamplighter
