#include "tests/reference/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter::reference {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

MATCHER(IsNear, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-12;
}

// Root with drafted tokens below it, `parents` for the drafted nodes; rows are given node by node.
ScoredTree make_cycle(std::vector<std::int64_t> parents, std::vector<std::int64_t> tokens,
                      std::vector<Distribution> target, std::vector<Distribution> draft,
                      std::vector<double> uniforms) {
  ScoredTree tree;
  tree.parents = std::move(parents);
  tree.tokens = std::move(tokens);
  tree.parents.insert(tree.parents.begin(), -1);
  tree.tokens.insert(tree.tokens.begin(), 0);
  tree.target = std::move(target);
  tree.draft = std::move(draft);
  tree.uniforms = std::move(uniforms);
  for (std::size_t node = 0; node < tree.parents.size(); ++node) {
    tree.draft_rows.push_back(node < tree.draft.size() ? static_cast<std::int64_t>(node) : -1);
  }
  return tree;
}

AcceptanceOptions options_of(Rule rule, std::int64_t k, std::vector<double> bounds) {
  AcceptanceOptions options;
  options.rule = rule;
  options.k = k;
  options.bounds = std::move(bounds);
  return options;
}

const Distribution kFlat{0.25, 0.25, 0.25, 0.25};
// Neighbours of code c: c + 1, c + 2, c + 3 around the circle.
const NeighbourTable kCircle{4, 3, {1, 2, 3, 2, 3, 0, 3, 0, 1, 0, 1, 2}};

TEST(VerifyTest, AcceptsAndSamplesFromTheLeaf) {
  const ScoredTree tree = make_cycle({0}, {2}, {kFlat, {0, 0.5, 0, 0.5}}, {kFlat}, {0.6, 0.999});
  const Verdict verdict = verify(tree, {});
  EXPECT_THAT(verdict.path, ElementsAre(0, 1));
  EXPECT_THAT(verdict.final, ElementsAre(0, 0.5, 0, 0.5));
  EXPECT_EQ(verdict.token, 3);
  EXPECT_EQ(verdict.reason, Reason::leaf);
  EXPECT_EQ(verdict.status, 0);
}

TEST(VerifyTest, RejectionLeavesTheExcessOfTheTarget) {
  // d = 0.5, Q = 0.25: u * d = 0.25 is not below it.
  const ScoredTree tree = make_cycle({0}, {0}, {kFlat, kFlat}, {{0.5, 0.25, 0.125, 0.125}}, {0, 0.5});
  const Verdict verdict = verify(tree, {});
  EXPECT_THAT(verdict.path, ElementsAre(0));
  EXPECT_THAT(verdict.final, Pointwise(IsNear(), Distribution{0, 0, 0.5, 0.5}));
  EXPECT_EQ(verdict.token, 2);
  EXPECT_EQ(verdict.reason, Reason::rejected);
}

TEST(VerifyTest, SecondSiblingIsVerifiedByWhatIsLeft) {
  const ScoredTree tree =
      make_cycle({0, 0}, {0, 1}, {kFlat, kFlat, kFlat}, {{0.5, 0.5, 0, 0}}, {0, 0.9, 0.9});
  const Verdict verdict = verify(tree, {});
  ASSERT_EQ(verdict.tests.size(), 2U);
  EXPECT_DOUBLE_EQ(verdict.tests[1].numerator, 0);
  EXPECT_DOUBLE_EQ(verdict.tests[1].denominator, 1);
  EXPECT_THAT(verdict.final, Pointwise(IsNear(), Distribution{0, 0, 0.5, 0.5}));
}

// Of one drafted token: min(d, w g), and what misses goes where it is nearest to the target.
TEST(VerifyTest, CoolGivesTheWeightedTokensAndTheRestOfTheTarget) {
  const Distribution g{0.1, 0.2, 0.3, 0.4}, d{0.4, 0.3, 0.2, 0.1};
  for (const double weight : {0.25, 0.75, 1.0, 1.5, 4.0}) {
    const AcceptanceOptions options = options_of(Rule::cool, 0, {weight});
    Distribution distribution(4), rest(4);
    for (std::size_t x = 0; x < 4; ++x) {
      const auto verified = [&](double uniform) {
        return verify(make_cycle({0}, {static_cast<std::int64_t>(x)}, {g, g}, {d}, {0, uniform}), options);
      };
      const double accepted = std::min(1.0, weight * g[x] / d[x]);
      if (accepted > 1e-9) {
        EXPECT_EQ(verified(accepted - 1e-9).path.size(), 2U) << weight << " " << x;
      }
      distribution[x] += d[x] * accepted;
      rest[x] = g[x] - std::min(d[x], weight * g[x]);
      if (accepted > 1 - 1e-9) continue;
      const Verdict rejected = verified(accepted + 1e-9);
      ASSERT_EQ(rejected.path.size(), 1U) << weight << " " << x;
      for (std::size_t y = 0; y < 4; ++y) distribution[y] += d[x] * (1 - accepted) * rejected.final[y];
    }
    double given = 0, left = 0;
    for (std::size_t x = 0; x < 4; ++x) given += std::min(d[x], weight * g[x]);
    for (double& value : rest) left += value = std::max(value, 0.0);
    for (std::size_t x = 0; x < 4; ++x) {
      const double expected = std::min(d[x], weight * g[x]) + (left > 0 ? (1 - given) * rest[x] / left : 0);
      EXPECT_NEAR(distribution[x], expected, 1e-9) << weight << " " << x;
      if (weight == 1.0) {
        EXPECT_NEAR(distribution[x], g[x], 1e-9) << x;
      }
    }
  }
}

// Of one drafted token: min(d, g / l) and norm((g - l d)+) for the rest; nothing comes more than 1 / l times
// as often as it should.
TEST(VerifyTest, LenienceBoundsHowMuchATokenGains) {
  const Distribution g{0.1, 0.2, 0.3, 0.4}, d{0.55, 0.3, 0.1, 0.05};
  for (const double lenience : {1.0, 0.8, 0.5, 0.25}) {
    const AcceptanceOptions options = options_of(Rule::lenient, 0, {1 / lenience});
    Distribution distribution(4), rest(4);
    double given = 0, left = 0, distance = 0;
    for (std::size_t x = 0; x < 4; ++x) {
      given += std::min(d[x], g[x] / lenience);
      left += rest[x] = std::max(g[x] - lenience * d[x], 0.0);
    }
    for (std::size_t x = 0; x < 4; ++x) {
      const auto verified = [&](double uniform) {
        return verify(make_cycle({0}, {static_cast<std::int64_t>(x)}, {g, g}, {d}, {0, uniform}), options);
      };
      const double accepted = std::min(1.0, g[x] / (lenience * d[x]));
      EXPECT_EQ(verified(accepted - 1e-9).path.size(), 2U) << lenience << " " << x;
      distribution[x] += d[x] * accepted;
      if (accepted > 1 - 1e-9) continue;
      const Verdict rejected = verified(accepted + 1e-9);
      ASSERT_EQ(rejected.path.size(), 1U) << lenience << " " << x;
      for (std::size_t y = 0; y < 4; ++y) distribution[y] += d[x] * (1 - accepted) * rejected.final[y];
    }
    for (std::size_t x = 0; x < 4; ++x) {
      EXPECT_NEAR(distribution[x], std::min(d[x], g[x] / lenience) + (1 - given) * rest[x] / left, 1e-9)
          << lenience;
      EXPECT_LE(distribution[x], g[x] / lenience + 1e-9) << lenience << " " << x;
      distance += std::abs(distribution[x] - g[x]);
    }
    EXPECT_EQ(distance > 1e-9, lenience < 1) << lenience;
  }
}

TEST(VerifyTest, OneBoundForEveryDepth) {
  // Each token lacks probability of its own but has a neighbour with 0.5.
  const Distribution row{0.25, 0.5, 0.25, 0};
  const ScoredTree tree = make_cycle({0, 1, 2}, {0, 0, 0}, {row, row, row, row},
                                     {{1, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}}, {0, 0.7, 0.7, 0.7});
  const auto accepted = [&](const AcceptanceOptions& options) {
    return verify(tree, options, &kCircle).path.size() - 1;
  };
  EXPECT_EQ(accepted(options_of(Rule::lantern_plus, 1, {4})), 3U);
  EXPECT_EQ(accepted(options_of(Rule::lantern_plus, 1, {4, 1})), 1U);
  EXPECT_EQ(accepted(options_of(Rule::lantern_plus, 1, {4, 4, 1})), 2U);
  EXPECT_EQ(accepted(options_of(Rule::lantern, 1, {0.6, 0.5})), 1U);
  EXPECT_EQ(accepted(options_of(Rule::lantern, 1, {0.6})), 3U);
}

TEST(VerifyTest, TheFirstNeighbourThatDoesNotFitEndsTheSearch) {
  const Distribution row{0.1, 0.5, 0.1, 0.3};
  const ScoredTree tree = make_cycle({0}, {0}, {row, row}, {kFlat}, {0, 0.9});
  const Verdict verdict = verify(tree, options_of(Rule::lantern, 3, {0.4}), &kCircle);
  EXPECT_EQ(verdict.tests.at(0).neighbours, 0);
}

TEST(VerifyTest, BadRowsEndTheWalk) {
  const Distribution none{0, 0, 0, 0}, bad{0.5, kNan, 0, 0};
  // The accepted token's row is bad.
  Verdict verdict = verify(make_cycle({0}, {1}, {kFlat, bad}, {kFlat}, {0, 0}), {});
  EXPECT_THAT(verdict.path, ElementsAre(0, 1));
  EXPECT_EQ(verdict.status, kBadTarget);
  EXPECT_EQ(verdict.token, -1);
  EXPECT_THAT(verdict.final, Each(0));
  // So is the root's draft row: nothing is tested.
  verdict = verify(make_cycle({0}, {1}, {kFlat, kFlat}, {none}, {0.3, 0}), {});
  EXPECT_EQ(verdict.status, kBadDraft);
  EXPECT_EQ(verdict.reason, Reason::bad_draft);
  EXPECT_EQ(verdict.token, 1);
  // Both.
  verdict = verify(make_cycle({0}, {1}, {none, kFlat}, {none}, {0.3, 0}), {});
  EXPECT_EQ(verdict.status, kBadTarget);
  for (const Rule rule : {Rule::traversal, Rule::block}) {
    verdict = verify(make_cycle({0}, {1}, {kFlat, bad}, {kFlat}, {0, 0}), options_of(rule, 0, {}));
    EXPECT_THAT(verdict.path, ElementsAre(0, 1));
    EXPECT_EQ(verdict.status, kBadTarget);
    EXPECT_EQ(verdict.token, -1);
    verdict = verify(make_cycle({0}, {1}, {kFlat, kFlat}, {none}, {0.3, 0}), options_of(rule, 0, {}));
    EXPECT_THAT(verdict.path, ElementsAre(0));
    EXPECT_EQ(verdict.status, kBadDraft);
    EXPECT_EQ(verdict.token, 1);
  }
}

TEST(VerifyTest, PaddingIsNeverAccepted) {
  for (const Rule rule : {Rule::exact, Rule::traversal}) {
    const ScoredTree tree =
        make_cycle({0, 0, 1}, {-1, 2, 4}, {kFlat, kFlat, kFlat, kFlat}, {kFlat, kFlat}, {0, 0, 0, 0});
    EXPECT_THAT(verify(tree, options_of(rule, 0, {})).path, ElementsAre(0, 2));
  }
  const ScoredTree chain = make_cycle({0, 1}, {2, -1}, {kFlat, kFlat, kFlat}, {kFlat, kFlat}, {0, 0, 0});
  EXPECT_THAT(verify(chain, options_of(Rule::block, 0, {})).path, ElementsAre(0, 1));
}

TEST(VerifyTest, NodesWithoutAParentAreLeftOut) {
  const ScoredTree tree = make_cycle({0, -1}, {2, 2}, {kFlat, kFlat, kFlat}, {kFlat}, {0, 0.9, 0});
  for (const Rule rule : {Rule::exact, Rule::traversal, Rule::block}) {
    const Verdict verdict = verify(tree, options_of(rule, 0, {}));
    EXPECT_THAT(verdict.path, ElementsAre(0, 1));
    EXPECT_EQ(verdict.tests.size(), 1U);
  }
}

TEST(VerifyTest, GreedyTakesTheLongestChain) {
  const Distribution peak{0.4, 0.3, 0.2, 0.1};
  // 0: right, then wrong; 1: right only with its neighbours' help, then right.
  const ScoredTree tree =
      make_cycle({0, 0, 1, 2}, {0, 1, 3, 0}, {peak, peak, peak, peak, peak}, {}, {0, 0, 0, 0, 0});
  AcceptanceOptions options;
  options.greedy = true;
  EXPECT_THAT(verify(tree, options).path, ElementsAre(0, 1));
  options = options_of(Rule::lantern, 1, {0.25});
  options.greedy = true;
  const Verdict verdict = verify(tree, options, &kCircle);
  EXPECT_THAT(verdict.path, ElementsAre(0, 2, 4));
  EXPECT_EQ(verdict.token, 0);
}

TEST(VerifyTest, OfficialUniformsGoByTheOrderOfTests) {
  // Node 2 is tested second, after node 1, and node 3 never: the second child of the root comes third in
  // order.
  AcceptanceOptions options;
  options.residual = Residual::official_static;
  const ScoredTree tree = make_cycle({0, 0, 2}, {0, 1, 2}, {{0, 0.5, 0.5, 0}, kFlat, kFlat, kFlat},
                                     {kFlat, kFlat, kFlat}, {0, 0.5, 0.25, 0.125});
  const Verdict verdict = verify(tree, options);
  ASSERT_EQ(verdict.tests.size(), 3U);
  EXPECT_EQ(verdict.tests[1].node, 2);
  EXPECT_DOUBLE_EQ(verdict.tests[1].uniform, 0.25);
  EXPECT_DOUBLE_EQ(verdict.tests[1].denominator, 0.25 / 0.75);
  EXPECT_DOUBLE_EQ(verdict.tests[2].uniform, 0.125);
}

TEST(VerifyTest, RejectsWhatDoesNotFit) {
  const auto message = [](const ScoredTree& tree, const AcceptanceOptions& options) -> std::string {
    return error_of(ExitCode::usage, [&] { verify(tree, options); });
  };
  const ScoredTree good = make_cycle({0, 0}, {0, 1}, {kFlat, kFlat, kFlat}, {kFlat}, {0, 0, 0});
  ScoredTree tree = good;
  EXPECT_EQ(message(good, {}), "");
  tree.parents[1] = 1;
  EXPECT_THAT(message(tree, {}), HasSubstr("parents[1] is 1"));
  tree = good;
  tree.uniforms.pop_back();
  EXPECT_THAT(message(tree, {}), HasSubstr("uniform"));
  tree = good;
  tree.target[2].pop_back();
  EXPECT_THAT(message(tree, {}), HasSubstr("one length"));
  tree = good;
  tree.draft_rows[0] = 5;
  EXPECT_THAT(message(tree, {}), HasSubstr("draft_rows[0] is 5"));
  tree.draft_rows[0] = -1;
  EXPECT_THAT(message(tree, {}), HasSubstr("no draft row"));
  EXPECT_THAT(message(good, options_of(Rule::block, 0, {})), HasSubstr("chains only"));
  EXPECT_THAT(message(good, options_of(Rule::lantern, 1, {0.1})), HasSubstr("table of neighbours"));
  EXPECT_THAT(message(good, options_of(Rule::lantern_plus, 0, {})), HasSubstr("needs a bound"));
}

TEST(SampleTest, TakesTheFirstIdBeyondTheUniform) {
  const Distribution row{0, 0.25, 0, 0.5, 0.25, 0};
  EXPECT_EQ(sample_token(row, 0), 1);
  EXPECT_EQ(sample_token(row, 0.2499), 1);
  EXPECT_EQ(sample_token(row, 0.25), 3);
  EXPECT_EQ(sample_token(row, 0.75), 4);
  EXPECT_EQ(sample_token(row, 1 - 1.0 / (1 << 24)), 4);
  EXPECT_EQ(sample_token({0, 0}, 0.5), -1);
  EXPECT_EQ(most_probable({0.2, 0.4, 0.4}), 1);
}

}  // namespace
}  // namespace lamplighter::reference
