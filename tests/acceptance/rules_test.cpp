#include "acceptance/rules.h"

#include <gtest/gtest.h>

#include "lamplighter/error.h"

namespace lamplighter {
namespace {

TEST(RulesTest, NamesGoBothWays) {
  for (const RuleTraits& rule : kRules) EXPECT_EQ(&traits_of(rule_from(rule.name)), &rule);
  EXPECT_EQ(rule_from("lantern++"), Rule::lantern_plus);
  EXPECT_EQ(rule_from("official-pac"), Rule::official_pac);  // the last one: every rule has a row
  for (const char* name : {"paper", "optimal", "official-static", "official-dynamic",
                           "official-lumina-static", "official-lumina-dynamic"}) {
    EXPECT_EQ(to_string(residual_from(name)), name);
  }
  EXPECT_THROW(rule_from("strict"), Error);
  EXPECT_THROW(residual_from(""), Error);
}

}  // namespace
}  // namespace lamplighter
