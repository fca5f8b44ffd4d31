#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "kernels/ops.h"
#include "kernels/verify/verify_images.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/verify/numbers_of.h"
#include "tests/reference/chi_square.h"

// Cycles through the operators guide_and_filter, sample_children, uniforms and verify_tree on a toy
// vocabulary, against the exact distribution of the tokens they must emit.
namespace lamplighter::test {
namespace {

using namespace reference;

constexpr int64_t kVocabulary = 5;
constexpr size_t kLength = 3;      // tokens whose joint distribution is compared
constexpr int64_t kImages = 8192;  // cycles of one call
constexpr int64_t kCycles = int64_t{1} << 20;
constexpr int64_t kFewerCycles = int64_t{1} << 18;  // enough for the planted bugs

using Tree = std::vector<int64_t>;
const Tree kTwoByTwo{-1, 0, 0, 1, 1};
const Tree kChain{-1, 0, 1};

using Verify = std::function<ops::Verified(const ops::ScoredTree&, const ops::VerifyOptions&)>;

// Rows for every context of up to two tokens, the empty one first.
int64_t context(const Tokens& tokens) {
  int64_t index = 0;
  for (const int64_t token : tokens) index = index * kVocabulary + token + 1;
  return index;
}

class VerifyDistributionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    const int64_t contexts = 1 + kVocabulary + kVocabulary * kVocabulary;
    const at::Tensor logits = random_tensor(rng_, {2, contexts, kVocabulary}, at::kFloat);
    target_ = filtered(logits, kTopK);
    unfiltered_ = filtered(logits, 0);
    draft_ = filtered(
        logits.narrow(0, 0, 1) + random_tensor(rng_, {1, contexts, kVocabulary}, at::kFloat, 0.7F), kTopK);
  }

  // [contexts, V] with guidance where there are two sequences.
  static at::Tensor filtered(const at::Tensor& logits, int64_t top_k) {
    return ops::probabilities(
               ops::guide_and_filter(logits.contiguous(),
                                     {at::full({1}, 2.5, at::kFloat), at::full({1}, 0.8, at::kFloat),
                                      at::full({1}, top_k, at::kLong), at::full({1}, 1.0, at::kFloat), "ar"}))
        .squeeze(0);
  }

  Distribution row(const at::Tensor& table, const Tokens& tokens) const {
    const float* p = table.const_data_ptr<float>() + context(tokens) * kVocabulary;
    Distribution result(p, p + kVocabulary);
    double total = 0;
    for (const double value : result) total += value;
    for (double& value : result) value /= total;
    return result;
  }

  ToyProblem toy(const Tree& parents) const {
    return {kVocabulary, parents, [this](const Tokens& tokens) { return row(target_, tokens); },
            [this](const Tokens& tokens) { return row(draft_, tokens); }};
  }

  ops::ScoredTree draft_trees(const Tree& parents, bool sampled, int64_t first_seed) const;
  JointDistribution emitted(const Tree& parents, const ops::VerifyOptions& options, const Verify& verify,
                            int64_t cycles);
  bool joint_distribution_fits(const Tree& parents, const ops::VerifyOptions& options, const Verify& verify,
                               int64_t cycles);

  static constexpr int64_t kTopK = 4;
  std::mt19937 rng_{77};
  at::Tensor target_, draft_, unfiltered_;
  at::Tensor leaf_rows_;  // what leaves take instead of target_, if defined
};

// kImages trees, their tokens sampled level by level.
ops::ScoredTree VerifyDistributionTest::draft_trees(const Tree& parents, bool sampled,
                                                    int64_t first_seed) const {
  const auto nodes = static_cast<int64_t>(parents.size());
  ops::ScoredTree tree;
  const at::Tensor seeds = at::arange(first_seed, first_seed + kImages, at::kLong);
  const at::Tensor steps = at::full({kImages}, 3, at::kLong);
  tree.uniforms = ops::uniforms(seeds, steps, ops::Purpose::accept, nodes + 1);
  tree.temperature = at::full({kImages}, 0.8, at::kFloat);
  tree.parents = at::tensor(parents).view({1, nodes});
  tree.tokens = at::full({kImages, nodes}, -1, at::kLong);
  at::Tensor contexts = at::zeros({kImages, nodes}, at::kLong);
  std::vector<at::Tensor> rows;
  std::vector<int64_t> draft_rows(parents.size(), -1);
  for (int64_t node = 0; node < nodes; ++node) {
    const int64_t count = std::count(parents.begin(), parents.end(), node);
    if (count == 0) continue;
    draft_rows[static_cast<size_t>(node)] = static_cast<int64_t>(rows.size());
    rows.push_back(draft_.index_select(0, contexts.select(1, node)).unsqueeze(1));
    const at::Tensor children = std::get<0>(
        ops::sample_children(rows.back(), {seeds, steps, at::full({1}, node, at::kLong), count, sampled}));
    const int64_t first = std::find(parents.begin(), parents.end(), node) - parents.begin();
    tree.tokens.narrow(1, first, count).copy_(children.squeeze(1));
    contexts.narrow(1, first, count)
        .copy_(contexts.narrow(1, node, 1) * kVocabulary + children.squeeze(1) + 1);
    tree.depth = node == 0 ? 1 : 2;
  }
  tree.draft = at::cat(rows, 1);
  tree.draft_rows = at::tensor(draft_rows).view({1, nodes});
  rows.clear();
  for (int64_t node = 0; node < nodes; ++node) {
    const bool leaf = draft_rows[static_cast<size_t>(node)] < 0;
    const at::Tensor& table = leaf && leaf_rows_.defined() ? leaf_rows_ : target_;
    rows.push_back(table.index_select(0, contexts.select(1, node)).unsqueeze(1));
  }
  tree.target = at::cat(rows, 1);
  return tree;
}

// How often each sequence of tokens came out.
JointDistribution VerifyDistributionTest::emitted(const Tree& parents, const ops::VerifyOptions& options,
                                                  const Verify& verify, int64_t cycles) {
  std::map<Tokens, double> counts;
  for (int64_t seed = 0; seed < cycles; seed += kImages) {
    const ops::ScoredTree tree = draft_trees(parents, options.sampled, seed);
    const ops::Verified result = verify(tree, options);
    const int64_t* tokens = tree.tokens.const_data_ptr<int64_t>();
    const int64_t* path = result.path.const_data_ptr<int64_t>();
    const int64_t* count = result.count.const_data_ptr<int64_t>();
    const int64_t* token = result.token.const_data_ptr<int64_t>();
    Tokens sequence;
    for (int64_t image = 0; image < kImages; ++image) {
      sequence.clear();
      for (int64_t i = 1; i <= count[image]; ++i) {
        sequence.push_back(tokens[image * tree.tokens.size(1) + path[image * (tree.depth + 1) + i]]);
      }
      sequence.push_back(token[image]);
      counts[sequence] += 1;
    }
  }
  return counts;
}

// The distribution of kLength tokens: sequences go on with plain samples from the target.
bool VerifyDistributionTest::joint_distribution_fits(const Tree& parents, const ops::VerifyOptions& options,
                                                     const Verify& verify, int64_t cycles) {
  std::mt19937_64 rng(9);
  JointDistribution counts;
  for (const auto& [tokens, count] : emitted(parents, options, verify, cycles)) {
    for (double i = 0; i < count; ++i) {
      Tokens sequence = tokens;
      while (sequence.size() < kLength) {
        sequence.push_back(sample_token(row(target_, sequence), static_cast<double>(rng() >> 11) * 0x1p-53));
      }
      counts[sequence] += 1;
    }
  }
  return fits(plain_distribution(toy(parents), kLength), counts);
}

struct Planted : verification::NoBugs {};

struct ResidualIsTarget : verification::NoBugs {
  static constexpr bool kResidualIsTarget = true;
};

struct SiblingsIndependent : verification::NoBugs {
  static constexpr bool kSiblingsIndependent = true;
};

struct SampledRuleForDeterministic : verification::NoBugs {
  static constexpr bool kSampledRuleForDeterministic = true;
};

// The body of the operator with bugs.
template <class Bugs>
ops::Verified verify_with(const ops::ScoredTree& tree, const ops::VerifyOptions& options) {
  VerifyArgs args = verify_args(tree, options);
  ops::Verified results = verify_results(args, tree);
  std::vector<float> scratch(verify_scratch_floats(args));
  verification::verify_images<Planted, Bugs>(args, 0, args.images, scratch.data());
  return results;
}

ops::VerifyOptions rule(const std::string& name, bool sampled = true) {
  ops::VerifyOptions options;
  options.rule = rule_from(name);
  options.sampled = sampled;
  return options;
}

TEST_F(VerifyDistributionTest, SampledChildrenKeepTheTargetsDistribution) {
  EXPECT_TRUE(joint_distribution_fits(kTwoByTwo, rule("exact"), ops::verify_tree, kCycles));
}

TEST_F(VerifyDistributionTest, DeterministicChildrenKeepTheTargetsDistribution) {
  EXPECT_TRUE(joint_distribution_fits(kTwoByTwo, rule("exact", false), ops::verify_tree, kCycles));
  EXPECT_TRUE(joint_distribution_fits(kTwoByTwo, rule("traversal", false), ops::verify_tree, kCycles));
  EXPECT_TRUE(joint_distribution_fits(kChain, rule("block", false), ops::verify_tree, kCycles));
}

TEST_F(VerifyDistributionTest, TraversalKeepsTheTargetsDistribution) {
  EXPECT_TRUE(joint_distribution_fits(kTwoByTwo, rule("traversal"), ops::verify_tree, kCycles));
}

TEST_F(VerifyDistributionTest, BlockVerificationKeepsTheTargetsDistribution) {
  EXPECT_TRUE(joint_distribution_fits(kChain, rule("block"), ops::verify_tree, kCycles));
}

TEST_F(VerifyDistributionTest, RelaxedRulesHaveTheDistributionOfTheHost) {
  NeighbourTable table{kVocabulary, 2, {1, 2, 2, 0, 3, 1, 4, 2, 3, 0}};
  AcceptanceOptions host;
  host.rule = Rule::lantern;
  host.bounds = {0.5, 0.25};
  host.k = 2;
  ops::VerifyOptions options = rule("lantern");
  options.numbers = numbers_of(options.rule, {0.5F, 0.25F});
  options.k = 2;
  options.neighbours = integers({kVocabulary, 2}, [&](int64_t i) {
                         return int64_t{table.ids[static_cast<size_t>(i)]};
                       }).to(at::kInt);
  const ToyProblem problem = toy(kTwoByTwo);
  for (const Residual residual : {Residual::paper, Residual::optimal}) {
    host.residual = residual;
    options.residual = residual;
    const JointDistribution distribution =
        DistributionOfCycle(problem, host, &table, reference::verify).distribution();
    const JointDistribution counts = emitted(kTwoByTwo, options, ops::verify_tree, kFewerCycles);
    EXPECT_TRUE(fits(distribution, counts)) << to_string(options.residual);
    host.rule = Rule::exact;
    EXPECT_FALSE(fits(DistributionOfCycle(problem, host, nullptr, reference::verify).distribution(), counts))
        << to_string(options.residual);
    host.rule = Rule::lantern;
  }
}

TEST_F(VerifyDistributionTest, TheSameBodyWithoutBugsPasses) {
  EXPECT_TRUE(
      joint_distribution_fits(kTwoByTwo, rule("exact"), verify_with<verification::NoBugs>, kFewerCycles));
}

TEST_F(VerifyDistributionTest, AResidualFromTheTargetIsFound) {
  EXPECT_FALSE(
      joint_distribution_fits(kTwoByTwo, rule("exact"), verify_with<ResidualIsTarget>, kFewerCycles));
}

TEST_F(VerifyDistributionTest, SiblingsVerifiedIndependentlyAreFound) {
  EXPECT_FALSE(
      joint_distribution_fits(kTwoByTwo, rule("exact"), verify_with<SiblingsIndependent>, kFewerCycles));
}

TEST_F(VerifyDistributionTest, TheSampledRuleForDeterministicChildrenIsFound) {
  EXPECT_FALSE(joint_distribution_fits(kTwoByTwo, rule("exact", false),
                                       verify_with<SampledRuleForDeterministic>, kFewerCycles));
}

TEST_F(VerifyDistributionTest, AnUnfilteredLastTokenIsFound) {
  leaf_rows_ = unfiltered_;
  EXPECT_FALSE(joint_distribution_fits(kTwoByTwo, rule("exact"), ops::verify_tree, kFewerCycles));
}

}  // namespace
}  // namespace lamplighter::test
