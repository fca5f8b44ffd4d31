#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "kernels/verify/rule_numbers.h"
#include "tests/kernels/verify/verify_problem.h"

// Single cases of verify_tree: bare roots, bad rows, depth, wrong arguments.
namespace lamplighter::test {
namespace {

using ::testing::HasSubstr;

// A chain below the root: rows of V probabilities.
ops::ScoredTree chain(const std::vector<std::vector<float>>& target,
                      const std::vector<std::vector<float>>& draft, const std::vector<int64_t>& tokens,
                      const std::vector<float>& uniforms) {
  const auto rows = [&](const std::vector<std::vector<float>>& values) {
    at::Tensor all = at::empty({1, 0, static_cast<int64_t>(target[0].size())}, at::kFloat);
    for (const std::vector<float>& row : values) all = at::cat({all, at::tensor(row).view({1, 1, -1})}, 1);
    return all;
  };
  const auto nodes = static_cast<int64_t>(tokens.size());
  ops::ScoredTree tree;
  tree.target = rows(target);
  tree.draft = rows(draft);
  tree.tokens = at::tensor(tokens).view({1, -1});
  tree.parents = integers({1, nodes}, [](int64_t i) { return i - 1; });
  tree.draft_rows = integers({1, nodes}, [&](int64_t i) { return i + 1 < nodes ? i : -1; });
  tree.uniforms = at::tensor(uniforms).view({1, -1});
  tree.temperature = at::full({1}, 1.0, at::kFloat);
  tree.depth = nodes - 1;
  return tree;
}

TEST(VerifyTreeTest, TheRootAloneIsAPlainSample) {
  std::mt19937 rng(3);
  VerifyShape shape;
  shape.images = 3;
  shape.vocabulary = 50;
  for (int repeat = 0; repeat < 200; ++repeat) {
    const VerifyProblem problem(rng, shape);
    const ops::Verified result = ops::verify_tree(problem.tree, {});
    const at::Tensor first = problem.tree.uniforms.narrow(1, 0, 1).contiguous();
    EXPECT_TRUE(
        result.token.equal(ops::sample(problem.tree.target, first, problem.tree.temperature).view(-1)));
    EXPECT_TRUE(same_bits(result.final, problem.tree.target.values.squeeze(1)));
    EXPECT_TRUE(result.path.equal(at::zeros({3, 1}, at::kLong)));
  }
}

TEST(VerifyTreeTest, BadRowsCountWhereTheWalkReachesThem) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> even{0.25F, 0.25F, 0.25F, 0.25F};
  for (const std::vector<float>& bad :
       {std::vector<float>{0, 0, 0, 0}, {0.5F, kNan, 0.5F, 0}, {0.5F, kInfinity, 0, 0}}) {
    for (const char* rule : {"exact", "traversal", "block", "official-pac"}) {
      ops::VerifyOptions options;
      options.rule = rule_from(rule);
      // Token 1 is accepted, then its row is bad.
      const ops::Verified reached =
          ops::verify_tree(chain({even, bad}, {even}, {0, 1}, {0.5F, 0.5F}), options);
      EXPECT_EQ(reached.status.item<int64_t>(), 1) << rule;
      EXPECT_EQ(reached.count.item<int64_t>(), 1) << rule;
      EXPECT_EQ(reached.token.item<int64_t>(), -1) << rule;
      EXPECT_EQ(reached.final.abs().max().item<float>(), 0) << rule;
      // Token 1 is rejected: the row below it does not count.
      const ops::Verified missed =
          ops::verify_tree(chain({{1, 0, 0, 0}, bad}, {even}, {0, 1}, {0.5F, 0.5F}), options);
      EXPECT_EQ(missed.status.item<int64_t>(), 0) << rule;
      EXPECT_EQ(missed.token.item<int64_t>(), 0) << rule;
      const ops::Verified draft = ops::verify_tree(chain({even, even}, {bad}, {0, 1}, {0.6F, 0.5F}), options);
      EXPECT_EQ(draft.status.item<int64_t>(), 2) << rule;
      EXPECT_EQ(draft.count.item<int64_t>(), 0) << rule;
      EXPECT_EQ(draft.token.item<int64_t>(), 2) << rule;
    }
  }
}

TEST(VerifyTreeTest, NodesBelowTheDepthAreNotVerified) {
  const std::vector<float> sure{0, 1, 0};
  ops::ScoredTree tree =
      chain({sure, sure, sure, sure}, {sure, sure, sure}, {0, 1, 1, 1}, {0.5F, 0.5F, 0.5F, 0.5F});
  for (const char* rule : {"exact", "traversal", "block", "official-pac"}) {
    ops::VerifyOptions options;
    options.rule = rule_from(rule);
    for (int64_t depth = 0; depth <= 3; ++depth) {
      tree.depth = depth;
      const ops::Verified result = ops::verify_tree(tree, options);
      EXPECT_EQ(result.count.item<int64_t>(), depth) << rule;
      EXPECT_EQ(result.path[0][depth].item<int64_t>(), depth) << rule;
    }
  }
}

// Ids 2 and 3 are codes, each the other's neighbour; 0 and 1 are not. Probabilities speak for id 1 alone.
TEST(VerifyTreeTest, LuminaTakesSyntaxIdsAndNoOtherIdsOutsideTheCodes) {
  const std::vector<float> target{0.05F, 0.9F, 0.03F, 0.02F}, draft{0.5F, 0.5F, 0, 0};
  ops::VerifyOptions options;
  options.neighbours = at::tensor({1, 0}, at::kInt).view({2, 1});
  options.first_image_id = 2;
  const auto accepted = [&](int64_t token, const char* residual, at::Tensor syntax_ids) {
    options.residual = residual_from(residual);
    options.syntax_ids = std::move(syntax_ids);
    return ops::verify_tree(chain({target, target}, {draft}, {0, token}, {0.5F, 0.8F}), options)
        .count.item<int64_t>();
  };
  const at::Tensor zero = at::tensor({0}, at::kLong);
  for (const char* residual : {"official-lumina-static", "official-lumina-dynamic"}) {
    EXPECT_EQ(accepted(0, residual, zero), 1) << residual;
    EXPECT_EQ(accepted(1, residual, zero), 0) << residual;
    EXPECT_EQ(accepted(1, residual, at::tensor({7, 1}, at::kLong)), 1) << residual;
    EXPECT_EQ(accepted(0, residual, at::Tensor()), 0) << residual;
    EXPECT_EQ(accepted(1, residual, at::Tensor()), 0) << residual;
    EXPECT_EQ(accepted(2, residual, at::tensor({2}, at::kLong)), 0) << residual;  // stays a code
  }
  for (const char* residual : {"official-static", "official-dynamic", "paper"}) {
    EXPECT_EQ(accepted(0, residual, zero), 0) << residual;
    EXPECT_EQ(accepted(1, residual, zero), 1) << residual;
  }
}

// Behind the last node stands what the row that it names says, not its target.
TEST(VerifyTreeTest, OfficialPacSamplesBehindTheLastNodeFromItsDraftRow) {
  const std::vector<float> sure{0, 1, 0};
  ops::VerifyOptions options;
  options.rule = Rule::official_pac;
  ops::ScoredTree tree = chain({sure, sure}, {sure, {0.25F, 0.25F, 0.5F}}, {0, 1}, {0.9F, 0.5F});
  EXPECT_EQ(ops::verify_tree(tree, options).token.item<int64_t>(), 1);
  tree.draft_rows[0][1] = 1;
  const ops::Verified verified = ops::verify_tree(tree, options);
  EXPECT_EQ(verified.count.item<int64_t>(), 1);
  EXPECT_EQ(verified.token.item<int64_t>(), 2);
  EXPECT_TRUE(verified.final.equal(at::tensor({0.25F, 0.25F, 0.5F}).view({1, 3})));
}

// The second child is accepted although the first one is, as the chain below it is longer.
TEST(VerifyTreeTest, OfficialPacTakesTheLongestChain) {
  const std::vector<float> even{0.5F, 0.5F, 0}, first{1, 0, 0}, second{0, 1, 0};
  ops::ScoredTree tree = chain({{0.4F, 0.2F, 0.4F}, first, second, first}, {{0.25F, 0.5F, 0.25F}, even},
                               {0, 0, 2, 1}, {0.5F, 0.9F, 0.9F, 0.9F});
  tree.parents = integers({1, 4}, [](int64_t i) { return i == 0 ? -1 : i == 3 ? 2 : 0; });
  tree.draft_rows = integers({1, 4}, [](int64_t i) { return i == 0 ? 0 : i == 2 ? 1 : -1; });
  tree.depth = 2;
  EXPECT_EQ(ops::verify_tree(tree, {}).path[0][1].item<int64_t>(), 1);
  ops::VerifyOptions options;
  options.rule = Rule::official_pac;
  const ops::Verified verified = ops::verify_tree(tree, options);
  EXPECT_TRUE(verified.path.equal(integers({1, 3}, [](int64_t i) { return i == 0 ? 0 : i + 1; })))
      << verified.path;
}

TEST(VerifyTreeTest, WrongArgumentsAreNamed) {
  std::mt19937 rng(1);
  VerifyShape shape;
  shape.images = 2;
  shape.nodes = 4;
  shape.neighbours = 3;
  const VerifyProblem good(rng, shape);
  const auto message = [&](const std::function<void(ops::ScoredTree&, ops::VerifyOptions&)>& spoil) {
    ops::ScoredTree tree = good.tree;
    ops::VerifyOptions options;
    options.neighbours = good.neighbours;
    spoil(tree, options);
    const std::string text = message_of([&] { ops::verify_tree(tree, options); });
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  };
  EXPECT_EQ(message([](auto&, auto&) {}), "no error");
  EXPECT_THAT(message([](auto& t, auto&) { t.target = t.target.values.to(at::kDouble); }),
              HasSubstr("verify_tree: target has dtype Double, expected Float"));
  EXPECT_THAT(message([](auto& t, auto&) { t.draft = t.draft.values.narrow(2, 0, 5).contiguous(); }),
              HasSubstr("verify_tree: draft has shape [2, "));
  EXPECT_THAT(message([](auto& t, auto&) { t.tokens = t.tokens.narrow(1, 0, 3).contiguous(); }),
              HasSubstr("verify_tree: tokens has shape [2, 3], expected [2, 4]"));
  EXPECT_THAT(message([](auto& t, auto&) { t.parents = t.parents.to(at::kInt); }),
              HasSubstr("verify_tree: parents has dtype Int, expected Long"));
  EXPECT_THAT(message([](auto& t, auto&) { t.draft_rows = t.draft_rows.view(-1); }),
              HasSubstr("verify_tree: draft_rows has shape [4], expected [2, 4]"));
  EXPECT_THAT(message([](auto& t, auto&) { t.uniforms = t.uniforms.narrow(1, 0, 3).contiguous(); }),
              HasSubstr("expected at least 4 an image"));
  EXPECT_THAT(message([](auto& t, auto&) { t.temperature = at::full({3}, 1.0, at::kFloat); }),
              HasSubstr("verify_tree: temperature has shape [3], expected [2]"));
  EXPECT_THAT(message([](auto& t, auto&) { t.depth = 64; }), HasSubstr("depth is 64, expected 0..63"));
  EXPECT_THAT(message([](auto&, auto& o) { o.rule = static_cast<Rule>(10); }),
              HasSubstr("rule is 10, expected 0..9"));
  EXPECT_THAT(message([](auto&, auto& o) { o.residual = static_cast<Residual>(-1); }),
              HasSubstr("residual is -1, expected 0..5"));
  EXPECT_THAT(message([](auto&, auto& o) { o.k = -1; }), HasSubstr("k is -1, expected 0 or more"));
  EXPECT_THAT(message([](auto&, auto& o) { o.neighbours = o.neighbours.to(at::kLong); }),
              HasSubstr("neighbours has dtype Long, expected Int"));
  EXPECT_THAT(message([](auto&, auto& o) { o.syntax_ids = at::zeros({2}, at::kInt); }),
              HasSubstr("syntax_ids has dtype Int, expected Long"));
  EXPECT_THAT(message([](auto&, auto& o) {
                o.syntax_ids = at::zeros({1, 2}, at::kLong);
              }),
              HasSubstr("syntax_ids has shape [1, 2], expected [-1]"));
  EXPECT_THAT(message([](auto&, auto& o) { o.first_image_id = 1; }),
              HasSubstr("first_image_id is 1, expected 0..0 for 8 codes among 8 ids"));
  EXPECT_THAT(message([](auto&, auto& o) {
                o.rule = Rule::block;
                o.residual = Residual::official_static;
              }),
              HasSubstr("rule block came with residual 2, expected 0 or 1"));
}

// As Python gives them to the operator.
TEST(RuleNumbersTest, BoundsAreTheValuesOfTheRulesOptions) {
  const auto numbers = [](Rule rule, const std::vector<float>& bounds) {
    return numbers_from(rule, at::tensor(bounds));
  };
  EXPECT_EQ(numbers(Rule::typical, {0.25F, 0.5F}).alpha, 0.5F);
  EXPECT_EQ(numbers(Rule::grouped, {0.25F, 0.5F}).group_gap, 0.25F);
  EXPECT_EQ(numbers(Rule::lantern, {0.25F}).delta.values[0], 0.25F);
  EXPECT_EQ(numbers(Rule::lantern_plus, {3, 2}).lambda.values[1], 2);
  EXPECT_EQ(numbers(Rule::lenient, {0.25F}).weights.values[0], 4);
  EXPECT_EQ(numbers(Rule::cool, {2, 0, 0}).weights.values[62], 2);
  EXPECT_EQ(numbers(Rule::exact, {7}).epsilon, 0);
  EXPECT_THAT(message_of([&] { numbers(Rule::typical, {0.1F}); }),
              HasSubstr("bounds have 1 entries, expected epsilon, alpha of rule typical"));
  EXPECT_THAT(message_of([&] { numbers(Rule::lantern, {}); }),
              HasSubstr("bounds have 0 entries, expected delta of rule lantern"));
}

}  // namespace
}  // namespace lamplighter::test
