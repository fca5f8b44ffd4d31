// The output distribution of every exact rule is the target's: all outcomes of draft and tests on all small
// trees.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "tests/reference/joint_distribution.h"
#include "tests/tree/shapes.h"

namespace lamplighter::reference {
namespace {

// A random row that depends on the context; with `zeros`, some tokens have probability 0.
Distribution random_row(const Tokens& context, std::uint32_t seed, std::int64_t vocabulary, bool zeros) {
  std::seed_seq words(context.begin(), context.end());
  std::vector<std::uint32_t> state(4);
  words.generate(state.begin(), state.end());
  std::mt19937 random(state[0] ^ (seed * 2654435761U) ^ static_cast<std::uint32_t>(context.size()));
  std::uniform_real_distribution<double> uniform(0, 1);
  Distribution row(static_cast<std::size_t>(vocabulary));
  for (double& value : row) value = zeros && uniform(random) < 0.3 ? 0.0 : 0.05 + uniform(random);
  row[random() % row.size()] += 0.1;
  const double sum = std::accumulate(row.begin(), row.end(), 0.0);
  for (double& value : row) value /= sum;
  return row;
}

ToyProblem random_problem(const Tree& tree, std::int64_t vocabulary, std::uint32_t seed, bool zeros) {
  return {vocabulary, tree.parent,
          [=](const Tokens& context) { return random_row(context, 2 * seed, vocabulary, zeros); },
          [=](const Tokens& context) { return random_row(context, 2 * seed + 1, vocabulary, zeros); }};
}

double distance_from_target(const ToyProblem& problem, const AcceptanceOptions& options,
                            const VerifyFunction& verification, std::size_t length) {
  DistributionOfCycle cycle(problem, options, nullptr, verification);
  return largest_difference(continued(cycle.distribution(), problem, length),
                            plain_distribution(problem, length));
}

struct ExactRule {
  const char* name;
  AcceptanceOptions options;
  bool chains_only = false;
};

AcceptanceOptions with(Rule rule, Proposal proposal, Residual residual = Residual::paper) {
  AcceptanceOptions options;
  options.rule = rule;
  options.proposal = proposal;
  options.residual = residual;
  return options;
}

const ExactRule kExactRules[] = {
    {"exact_sampled", with(Rule::exact, Proposal::sampled)},
    {"exact_deterministic", with(Rule::exact, Proposal::deterministic)},
    {"exact_independent", with(Rule::exact, Proposal::independent)},
    {"official_static", with(Rule::exact, Proposal::sampled, Residual::official_static)},
    {"official_lumina_static", with(Rule::exact, Proposal::sampled, Residual::official_lumina_static)},
    {"official_dynamic", with(Rule::exact, Proposal::deterministic, Residual::official_dynamic)},
    {"traversal_sampled", with(Rule::traversal, Proposal::sampled)},
    {"traversal_deterministic", with(Rule::traversal, Proposal::deterministic)},
    {"traversal_independent", with(Rule::traversal, Proposal::independent)},
    {"block_sampled", with(Rule::block, Proposal::sampled), true},
    {"block_deterministic", with(Rule::block, Proposal::deterministic), true},
};

class ExactnessTest : public testing::TestWithParam<ExactRule> {};

TEST_P(ExactnessTest, DistributionIsTheTargets) {
  const ExactRule& rule = GetParam();
  std::uint32_t seed = 1;
  int problems = 0;
  for (const Tree& tree : all_trees(5)) {
    if (rule.chains_only && tree.max_children() > 1) continue;
    for (const std::int64_t vocabulary : {3, 4}) {
      for (const bool zeros : {false, true}) {
        const ToyProblem problem = random_problem(tree, vocabulary, seed++, zeros);
        const auto length = static_cast<std::size_t>(tree.max_depth()) + 1;
        EXPECT_LE(distance_from_target(problem, rule.options, verify, length), 1e-12)
            << tree_to_json(tree).dump() << ", vocabulary " << vocabulary << ", zeros " << zeros;
        ++problems;
      }
    }
  }
  EXPECT_EQ(problems, (rule.chains_only ? 5 : 23) * 4);
}

INSTANTIATE_TEST_SUITE_P(Rules, ExactnessTest, testing::ValuesIn(kExactRules),
                         [](const auto& test) { return std::string(test.param.name); });

// The sum of all probabilities is 1 and the sequence lengths are those the tree allows.
TEST(JointDistributionTest, IsADistribution) {
  const Tree tree = make_tree({{0}, {1}, {0, 0}, {0, 1}});
  const ToyProblem problem = random_problem(tree, 4, 77, false);
  const JointDistribution distribution = DistributionOfCycle(problem, {}, nullptr, verify).distribution();
  double sum = 0;
  for (const auto& [tokens, probability] : distribution) {
    sum += probability;
    EXPECT_LE(tokens.size(), 3U);
  }
  EXPECT_NEAR(sum, 1, 1e-12);
}

// The comparison above can tell right from wrong.
TEST(JointDistributionTest, SiblingsVerifiedWithoutAnUpdateAreFound) {
  for (const Tree& tree : {make_tree({{0}, {1}}), make_tree({{0}, {1}, {0, 0}, {0, 1}})}) {
    const ToyProblem problem = random_problem(tree, 4, 5, false);
    const auto length = static_cast<std::size_t>(tree.max_depth()) + 1;
    EXPECT_GT(distance_from_target(problem, {}, verify_without_update, length), 1e-3);
  }
}

TEST(JointDistributionTest, DeterministicChildrenVerifiedAsSampledAreFound) {
  const VerifyFunction as_sampled = [](const ScoredTree& drafted, const AcceptanceOptions& options,
                                       const NeighbourTable* table) {
    AcceptanceOptions other = options;
    other.proposal = Proposal::sampled;
    return verify(drafted, other, table);
  };
  const ToyProblem problem = random_problem(make_tree({{0}, {1}}), 4, 5, false);
  const AcceptanceOptions options = with(Rule::exact, Proposal::deterministic);
  EXPECT_GT(distance_from_target(problem, options, as_sampled, 2), 1e-3);
}

TEST(JointDistributionTest, RelaxedRulesAreNotExact) {
  const ToyProblem problem = random_problem(make_tree({{0}, {1}}), 4, 5, false);
  const NeighbourTable table{4, 3, {1, 2, 3, 0, 2, 3, 3, 1, 0, 2, 1, 0}};
  AcceptanceOptions options = with(Rule::lantern, Proposal::sampled);
  options.k = 3;
  options.bounds = {0.3};
  const JointDistribution distribution = DistributionOfCycle(problem, options, &table, verify).distribution();
  EXPECT_GT(largest_difference(continued(distribution, problem, 2), plain_distribution(problem, 2)), 1e-3);
}

// A drafted tree with random rows and tokens.
ScoredTree random_cycle(const Tree& tree, std::int64_t vocabulary, std::mt19937& random) {
  ScoredTree drafted;
  std::uniform_real_distribution<double> uniform(0, 1);
  const auto nodes = static_cast<std::size_t>(tree.size());
  drafted.parents = tree.parent;
  drafted.draft_rows.resize(nodes);
  std::iota(drafted.draft_rows.begin(), drafted.draft_rows.end(), 0);
  for (std::size_t node = 0; node < nodes; ++node) {
    drafted.target.push_back(random_row({}, static_cast<std::uint32_t>(random()), vocabulary, node % 2 == 1));
    drafted.draft.push_back(random_row({}, static_cast<std::uint32_t>(random()), vocabulary, false));
    drafted.uniforms.push_back(uniform(random));
    drafted.tokens.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(vocabulary)));
  }
  return drafted;
}

bool same_bits(const Distribution& a, const Distribution& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// A bound of nothing takes the decisions of the exact rule.
TEST(RelaxedTest, WithoutRoomToBorrowEqualsExactBitByBit) {
  std::mt19937 random(11);
  const std::int64_t vocabulary = 12;
  NeighbourTable table{vocabulary, vocabulary - 1, {}};
  for (std::int64_t code = 0; code < vocabulary; ++code) {
    for (std::int64_t step = 1; step < vocabulary; ++step) {
      table.ids.push_back(static_cast<std::uint16_t>((code + step) % vocabulary));
    }
  }
  struct Bound {
    Rule rule;
    std::int64_t k;
    std::vector<double> bounds;
  };
  const Bound bounds[] = {{Rule::lantern, 5, {0}},        {Rule::lantern_plus, 5, {1}},
                          {Rule::lantern, 0, {0.5}},      {Rule::lantern_plus, 0, {4}},
                          {Rule::lantern, 5, {-1, 0, 0}}, {Rule::lantern_plus, 5, {0.5, 1}},
                          {Rule::cool, 0, {1}},           {Rule::lenient, 0, {1}}};
  const Tree tree = preset_tree("lantern-26");
  std::size_t accepted = 0;
  for (int round = 0; round < 300; ++round) {
    const ScoredTree drafted = random_cycle(tree, vocabulary, random);
    for (int residual = 0; residual < 6; ++residual) {
      AcceptanceOptions options =
          with(Rule::exact, round % 2 == 0 ? Proposal::sampled : Proposal::deterministic,
               static_cast<Residual>(residual));
      options.greedy = round % 3 == 2;
      const Verdict exact = verify(drafted, options, &table);
      accepted += exact.path.size() - 1;
      for (const Bound& bound : bounds) {
        options.rule = bound.rule;
        options.k = bound.k;
        options.bounds = bound.bounds;
        const Verdict relaxed = verify(drafted, options, &table);
        EXPECT_EQ(relaxed.path, exact.path);
        EXPECT_EQ(relaxed.token, exact.token);
        EXPECT_TRUE(same_bits(relaxed.final, exact.final));
      }
      options.rule = Rule::lantern;
      options.k = 5;
      options.bounds = {0.5};
      if (!options.greedy) {
        EXPECT_GE(verify(drafted, options, &table).tests.at(0).numerator, exact.tests.at(0).numerator);
      }
    }
  }
  EXPECT_GT(accepted, 300U);
}

}  // namespace
}  // namespace lamplighter::reference
