#include "bench/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "draft/rows/zipar_plan.h"

namespace lamplighter {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Time per stage in milliseconds, tokens per cycle, and the measured speed-up.
BenchReport measured(const std::string& method, double draft, double score, double rest, double tokens,
                     double speedup) {
  BenchReport report;
  report.method = method;
  report.draft_ms = draft;
  report.score_ms = score;
  report.verify_ms = rest;
  report.cycle_ms = draft + score + rest;
  report.acceptance_length = report.step_compression = {tokens, tokens, tokens, 8};
  report.speedup = {speedup, speedup - 0.02, speedup + 0.02, 8};
  report.share_kept = speedup / tokens;
  return report;
}

BenchMethod eagle(const std::string& tree) {
  MethodOptions options;
  options.method = "eagle";
  options.tree = tree;
  return {"eagle", options};
}

std::vector<BenchReport> costs(std::vector<BenchReport> reports, const std::string& tree) {
  add_pass_costs(reports, {{kBaseline, {}}, eagle(tree)}, {1e6, 2, true});
  return reports;
}

const BenchReport kStep = measured("ar", 0, 10, 0.5, 1, 1);

TEST(PassCost, RowsBytesAndGrowthAreThoseOfTheTree) {
  const std::vector<BenchReport> reports = costs({kStep, measured("eagle", 2, 20, 1, 2.5, 1.1)}, "chain-3");
  EXPECT_EQ(reports[0].pass.rows, 2);
  EXPECT_EQ(reports[0].pass.depth, 0);
  const PassCost& pass = reports[1].pass;
  EXPECT_EQ(pass.nodes, 4);
  EXPECT_EQ(pass.depth, 3);
  EXPECT_EQ(pass.rows, 8);  // of both halves
  EXPECT_DOUBLE_EQ(pass.weight_bytes, 2e6);
  EXPECT_DOUBLE_EQ(pass.multiplications, 8e6);
  EXPECT_DOUBLE_EQ(pass.over_step, 2);
  EXPECT_DOUBLE_EQ(pass.growth, 0.5);  // twice the time for four times the rows
  EXPECT_FALSE(pass.is_arithmetic());
}

TEST(PassCost, EmbeddingsAreNoWeightsOfAPass) {
  Manifest manifest;
  manifest.tokens.vocabulary = 1000;
  manifest.target.hidden = 10;
  manifest.files["target.pt"].bytes = 20000 + 8000;
  for (const auto& [dtype, bytes] : {std::pair{"bfloat16", 2.0}, std::pair{"int8", 1.0}}) {
    manifest.modules["target"] = {"target.pt", dtype};
    const PassFacts facts = pass_facts(manifest, "bf16", {}, true);
    EXPECT_DOUBLE_EQ(facts.weights * bytes, 8000) << dtype;
    EXPECT_EQ(facts.bytes_each, 2);
  }
  manifest.modules["target"].dtype = "float32";  // embeddings larger than the whole file
  EXPECT_EQ(pass_facts(manifest, "fp32", {}, true).weights, 0);
}

TEST(PassCost, AWholeBatchIsScoredTogether) {
  BenchReport step = kStep, eagle = measured("eagle", 2, 80, 1, 2.5, 0.5);
  step.batch_size = eagle.batch_size = 4;
  const std::vector<BenchReport> reports = costs({step, eagle}, "chain-3");
  EXPECT_EQ(reports[1].pass.rows, 32);
  EXPECT_DOUBLE_EQ(reports[1].pass.growth, 1.5);
  // Without ar at the same batch size no comparison is possible.
  const std::vector<BenchReport> alone = costs({kStep, eagle}, "chain-3");
  EXPECT_DOUBLE_EQ(alone[1].pass.over_step, 0);
  EXPECT_EQ(alone[1].verdict, "");
}

TEST(PassCost, DynamicTreesCountTheirRoot) {
  BenchMethod dynamic = eagle("dynamic");
  dynamic.options.dynamic_nodes = 20;
  dynamic.options.dynamic_depth = 3;
  std::vector<BenchReport> reports{kStep, measured("eagle", 2, 20, 1, 2.5, 1.1)};
  add_pass_costs(reports, {{kBaseline, {}}, dynamic}, {1e6, 4, false});
  EXPECT_EQ(reports[1].pass.rows, 21);
  EXPECT_EQ(reports[1].pass.depth, 4);
}

TEST(PassCost, ParallelRowsOfAnImage) {
  BenchMethod zipar = eagle("");
  zipar.options.method = "zipar";
  zipar.options.ahead = 4;
  PassFacts facts{1e6, 4, true};
  facts.grid.rows = facts.grid.columns = 16;
  std::vector<BenchReport> reports{kStep, measured("eagle", 0, 20, 1, 2.5, 1.1)};
  add_pass_costs(reports, {{kBaseline, {}}, zipar}, facts);
  EXPECT_EQ(reports[1].pass.rows, 2 * plan_zipar(16, 16, 4).widest());
  EXPECT_GE(reports[1].pass.nodes, 4);
}

TEST(Verdict, SaysNothingWhereSpeculationPays) {
  EXPECT_EQ(costs({kStep, measured("eagle", 2, 12, 0.5, 2.5, 1.8)}, "chain-3")[1].verdict, "");
  // An interval that contains 1 proves no loss.
  EXPECT_EQ(costs({kStep, measured("eagle", 2, 12, 0.5, 1.8, 0.99)}, "chain-3")[1].verdict, "");
}

TEST(Verdict, NamesTheCostliestPart) {
  const auto words = [](double draft, double score, double rest, double tokens, double speedup) {
    return costs({kStep, measured("eagle", draft, score, rest, tokens, speedup)}, "chain-3")[1].verdict;
  };
  EXPECT_THAT(words(14, 12, 0.5, 2.1, 0.83),
              AllOf(HasSubstr("eagle at batch size 1 does not pay off: 0.83 times as fast as ar at S 2.10"),
                    HasSubstr("a cycle gives 2.10 tokens and costs 2.52 steps of ar"),
                    HasSubstr("(drafting 1.33, the pass 1.14, verification and commit 0.05)"),
                    HasSubstr("; drafting takes most of the gain")));
  EXPECT_THAT(
      words(2, 38, 0.5, 2.1, 0.54),
      HasSubstr(
          "the wide pass takes most of the gain: its 8 rows take 3.80 times as long as the 2 rows of ar, "
          "bound by arithmetic: more rows are not free here"));
  EXPECT_THAT(words(2, 12, 20, 2.1, 0.7), HasSubstr("verification takes most of the gain"));
  EXPECT_THAT(words(4, 12, 0.5, 1.2, 0.77),
              HasSubstr("few drafted tokens are accepted: 0.20 per cycle, of drafts to depth 3"));
  // Faster than ar, but far below S; bytes bound the pass.
  EXPECT_THAT(words(5, 19, 0.5, 3, 1.3),
              AllOf(HasSubstr("eagle at batch size 1 gains less speed than S suggests: 1.30 times as fast"),
                    HasSubstr("bound by the 2 MB of weights")));
  // The interval contains 1.
  EXPECT_THAT(words(14, 12, 0.5, 2.1, 0.99),
              HasSubstr("gains less speed than S suggests: 0.99 times as fast"));
}

TEST(Verdict, WithoutStagesNamesTheWhole) {
  BenchReport step = kStep, eagle = measured("eagle", 0, 0, 0, 2, 0.8);
  eagle.cycle_ms = 26.25;
  const std::string words = verdict(eagle, step);
  EXPECT_THAT(words, HasSubstr("costs 2.50 steps of ar"));
  EXPECT_THAT(words, ::testing::Not(HasSubstr("drafting")));
}

}  // namespace
}  // namespace lamplighter
