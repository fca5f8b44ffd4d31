#include "bench/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "draft/options/options.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

BenchMethod method(const std::string& name, const std::string& rule = "") {
  MethodOptions options;
  options.method = name;
  options.rule = rule;
  return {rule.empty() ? name : name + ":rule=" + rule, options};
}

std::vector<std::string> names_of(const std::vector<BenchMethod>& methods) {
  std::vector<std::string> names;
  for (const BenchMethod& one : methods) names.push_back(one.name);
  return names;
}

TEST(Sweep, APieceWithAnEqualsSignBeginsTheNextOption) {
  const Sweep sweep = parse_sweep({"tree=chain-2", "chain-4", "lambda=2", "3/2/2", "k=5"});
  ASSERT_EQ(sweep.size(), 3U);
  EXPECT_STREQ(sweep[0].option->word, "tree");
  EXPECT_THAT(sweep[0].values, ElementsAre("chain-2", "chain-4"));
  EXPECT_THAT(sweep[1].values, ElementsAre("2", "3/2/2"));
  EXPECT_STREQ(sweep[2].option->key, "relax_k");
  EXPECT_TRUE(parse_sweep({}).empty());
}

TEST(Sweep, WhatIsNotUnderstoodIsNamed) {
  const auto text = [](const std::vector<std::string>& pieces) {
    return error_of(ExitCode::usage, [&] { parse_sweep(pieces); });
  };
  EXPECT_THAT(text({"chain-2"}), HasSubstr("sweep: got 'chain-2', expected KEY=VALUE"));
  EXPECT_THAT(text({"trees=chain-2"}), HasSubstr("sweep: got 'trees', expected rule, tree"));
  EXPECT_THAT(text({"tree="}), HasSubstr("tree with an empty value"));
  EXPECT_THAT(text({"tree=chain-2", ""}), HasSubstr("tree with an empty value"));
  EXPECT_THAT(text({"k=5", "many"}), HasSubstr("'many' for k, expected a number"));
  EXPECT_THAT(text({"tree=chain-2", "chain-2"}), HasSubstr("tree=chain-2 twice"));
  EXPECT_THAT(text({"k=5", "tree=chain-2", "k=6"}), HasSubstr("k twice"));
}

TEST(Sweep, EveryMethodHasEveryCombinationOfWhatItReads) {
  const Sweep sweep = parse_sweep({"tree=chain-2", "chain-4", "lambda=2", "3/2", "delta=0.1"});
  const auto methods = expand({method("ar"), method("eagle"), method("lantern"), method("lantern++")}, sweep);
  EXPECT_THAT(names_of(methods),
              ElementsAre("ar", "eagle:tree=chain-2", "eagle:tree=chain-4", "lantern:tree=chain-2:delta=0.1",
                          "lantern:tree=chain-4:delta=0.1", "lantern++:tree=chain-2:lambda=2",
                          "lantern++:tree=chain-2:lambda=3/2", "lantern++:tree=chain-4:lambda=2",
                          "lantern++:tree=chain-4:lambda=3/2"));
  EXPECT_THAT(methods.back().options.lambda, ElementsAre(3.0F, 2.0F));
  EXPECT_EQ(methods.back().options.tree, "chain-4");
  EXPECT_FALSE(methods.back().options.delta.has_value());
}

// Options apply in order: an option decides which methods read the next one.
TEST(Sweep, ASweptRuleOrTreeDecidesWhatIsRead) {
  EXPECT_THAT(
      names_of(expand({method("eagle")}, parse_sweep({"rule=exact", "lantern++", "lambda=2", "3"}))),
      ElementsAre("eagle:rule=exact", "eagle:rule=lantern++:lambda=2", "eagle:rule=lantern++:lambda=3"));
  EXPECT_THAT(names_of(expand({method("eagle-2")}, parse_sweep({"tree=chain-2", "dynamic", "depth=3"}))),
              ElementsAre("eagle-2:tree=chain-2", "eagle-2:tree=dynamic:depth=3"));
  EXPECT_THAT(
      names_of(expand({method("eagle"), method("ngram")}, parse_sweep({"draft-guidance=conditional"}))),
      ElementsAre("eagle:draft-guidance=conditional", "ngram"));
  EXPECT_THAT(names_of(expand({method("eagle", "lantern")}, parse_sweep({"k=3"}))),
              ElementsAre("eagle:rule=lantern:k=3"));
}

TEST(Sweep, AnOptionThatNoMethodReadsIsRefused) {
  const auto text = [](std::vector<BenchMethod> methods, const std::vector<std::string>& pieces) {
    return error_of(ExitCode::usage, [&] { expand(std::move(methods), parse_sweep(pieces)); });
  };
  EXPECT_THAT(text({method("ar")}, {"tree=chain-2"}),
              HasSubstr("tree=chain-2, expected a method that uses it"));
  EXPECT_THAT(text({method("ar"), method("eagle")}, {"lambda=2"}), HasSubstr("does not set lambda"));
  EXPECT_THAT(text({method("eagle", "lantern")}, {"rule=exact"}), HasSubstr("does not set rule"));
  EXPECT_THAT(text({method("nosuch")}, {"tree=chain-2"}), HasSubstr("'nosuch'"));
}

}  // namespace
}  // namespace lamplighter
