#include "bench/methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(BenchMethods, AWordSaysAllOfAMethod) {
  const MethodOptions options = parse_method("lantern++:k=10:lambda=3/2.5:tree=trees/my.json:children=top");
  EXPECT_EQ(options.method, "lantern++");
  EXPECT_EQ(options.k, 10);
  EXPECT_THAT(options.lambda, ElementsAre(3.0F, 2.5F));
  EXPECT_EQ(options.tree, "trees/my.json");
  EXPECT_EQ(options.children, "top");
  EXPECT_FALSE(options.delta.has_value());
  const MethodOptions dynamic = parse_method("eagle-2:depth=3:width=4:nodes=20:draft-guidance=conditional");
  EXPECT_EQ(dynamic.dynamic_depth, 3);
  EXPECT_EQ(dynamic.dynamic_width, 4);
  EXPECT_EQ(dynamic.dynamic_nodes, 20);
  EXPECT_EQ(dynamic.draft_guidance, "conditional");
}

TEST(BenchMethods, AWordIsWrittenAsFlags) {
  EXPECT_EQ(method_flags(parse_method("zipar")), "--method zipar");
  EXPECT_EQ(method_flags(parse_method("zipar+sjd:init=above:ahead=4:tree=chain-1")),
            "--method zipar+sjd --tree chain-1 --init above --ahead 4");
  EXPECT_EQ(method_flags(parse_method("lantern++:k=10:lambda=3/2.1")),
            "--method lantern++ --relax-k 10 --lambda 3.0,2.1");
}

TEST(BenchMethods, WhatIsNotUnderstoodIsNamed) {
  const auto refusal = [](const std::string& text) -> std::string {
    return error_of(ExitCode::usage, [&] { parse_method(text); });
  };
  EXPECT_THAT(refusal("lantern:k=ten"), HasSubstr("'k=ten' in 'lantern:k=ten', expected a number"));
  EXPECT_THAT(refusal("lantern:k=10x"), HasSubstr("expected a number"));
  EXPECT_THAT(refusal("eagle:temperature=1"), HasSubstr("expected rule, tree, children"));
  EXPECT_THAT(refusal("eagle:chain-4"), HasSubstr("'chain-4' in 'eagle:chain-4', expected KEY=VALUE"));
  EXPECT_THAT(refusal("eagle:tree="), HasSubstr("expected a value"));
}

std::vector<std::string> names(const std::vector<BenchMethod>& methods) {
  std::vector<std::string> names;
  for (const BenchMethod& method : methods) names.push_back(method.name);
  return names;
}

TEST(BenchMethods, TheBaselineIsAlwaysThereAndFirst) {
  EXPECT_THAT(names(bench_methods({})), ElementsAre("ar"));
  EXPECT_THAT(names(bench_methods({"eagle", "ar"})), ElementsAre("ar", "eagle"));
  EXPECT_THROW(bench_methods({"eagle", "eagle"}), Error);
  EXPECT_THROW(bench_methods({"ar", "ar"}), Error);
}

TEST(BenchMethods, SweptTreesGoToMethodsThatNameNone) {
  const auto methods =
      bench_methods({"ar", "eagle", "lantern:tree=chain-1"}, parse_sweep({"tree=chain-2", "chain-3"}));
  EXPECT_THAT(names(methods),
              ElementsAre("ar", "eagle:tree=chain-2", "eagle:tree=chain-3", "lantern:tree=chain-1"));
  EXPECT_EQ(methods[0].options.tree, "");
  EXPECT_EQ(methods[2].options.tree, "chain-3");
  EXPECT_EQ(methods[3].options.tree, "chain-1");
  // A method from a sweep may also be in the list.
  EXPECT_THROW(bench_methods({"eagle", "eagle:tree=chain-2"}, parse_sweep({"tree=chain-2"})), Error);
}

}  // namespace
}  // namespace lamplighter
