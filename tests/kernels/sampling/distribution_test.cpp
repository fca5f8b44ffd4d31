#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/verify/verify_problem.h"

// Logits with statistics are the probabilities that they stand for: whatever reads one kind reads the other,
// with the same bits.
namespace lamplighter::test {
namespace {

using ops::Distributions;
using ::testing::HasSubstr;

class DistributionTest : public KernelTest {
 protected:
  // Distributions of `images` images with random settings of the filters; logits: [I, R, V] of the test's
  // dtype. Every other call is guided.
  Distributions filtered(const at::Tensor& logits) {
    const int64_t images = logits.size(0), vocabulary = logits.size(2);
    const bool guided = ++calls_ % 2 == 0;
    at::Tensor sequences = logits.to(dtype());
    if (guided) {
      const at::Tensor other = logits + random_tensor(rng_, logits.sizes(), at::kFloat, 0.5F);
      sequences = at::stack({logits, other}, 1).flatten(0, 1).to(dtype());
    }
    at::Tensor guidance = at::full({images}, 1.75, at::kFloat);
    if (calls_ % 4 == 0) {
      guidance = guidance.unsqueeze(1).repeat({1, logits.size(1)});
      guidance.select(1, 0).fill_(1);
    }
    const at::Tensor temperature = at::full({images}, calls_ % 11 == 0 ? 0.0 : 0.9, at::kFloat);
    const at::Tensor top_k =
        integers({images}, [&](int64_t) { return pick(rng_, 0, 2) * pick(rng_, 1, vocabulary); });
    const at::Tensor top_p = at::full({images}, calls_ % 3 == 0 ? 0.8 : 1.0, at::kFloat);
    return ops::guide_and_filter(sequences,
                                 {guidance, temperature, top_k, top_p, calls_ % 5 < 3 ? "ar" : "eagle"});
  }

  at::Tensor random_logits(int64_t images, int64_t rows, int64_t vocabulary) {
    at::Tensor logits = random_tensor(rng_, {images, rows, vocabulary}, at::kFloat, 2);
    return pick(rng_, 0, 3) == 0 ? (logits * 2).round() : logits;  // ties
  }

  int calls_ = 0;
};

TEST_P(DistributionTest, SamplesAreThoseOfTheProbabilities) {
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t images = pick(rng_, 1, 3), rows = pick(rng_, 1, 4);
    const int64_t vocabulary = trial % 10 == 0 ? pick(rng_, 2048, 9000) : pick(rng_, 5, 300);
    const Distributions lazy = filtered(random_logits(images, rows, vocabulary));
    const Distributions plain = ops::probabilities(lazy);
    SCOPED_TRACE("trial " + std::to_string(trial));
    const at::Tensor uniforms = random_tensor(rng_, {images, rows}, at::kFloat).sigmoid();
    const at::Tensor temperature = at::full({images}, trial % 3, at::kFloat);
    EXPECT_TRUE(ops::sample(lazy, uniforms, temperature).equal(ops::sample(plain, uniforms, temperature)));
    const at::Tensor seeds = integers({images}, [](int64_t i) { return 40 + i; });
    const at::Tensor nodes = integers({rows}, [](int64_t i) { return i; });
    for (const bool sampled : {true, false}) {
      const auto [tokens, conditional] = ops::sample_children(lazy, {seeds, seeds, nodes, 3, sampled});
      const auto [plain_tokens, plain_conditional] =
          ops::sample_children(plain, {seeds, seeds, nodes, 3, sampled});
      EXPECT_TRUE(tokens.equal(plain_tokens));
      EXPECT_TRUE(same_bits(conditional, plain_conditional));
    }
    const at::Tensor scores = -at::ones({images, rows});
    const auto [tokens, pool_scores, frontier] = ops::expand_dynamic(lazy, scores, 5);
    const auto [plain_tokens, plain_scores, plain_frontier] = ops::expand_dynamic(plain, scores, 5);
    EXPECT_TRUE(tokens.equal(plain_tokens));
    EXPECT_TRUE(same_bits(pool_scores, plain_scores));
    EXPECT_TRUE(frontier.equal(plain_frontier));
  }
}

TEST_P(DistributionTest, VerdictsAreThoseOfTheProbabilities) {
  int64_t accepted = 0;
  for (int trial = 0; trial < 150; ++trial) {
    VerifyShape shape;
    shape.images = pick(rng_, 1, 3);
    shape.nodes = pick(rng_, 2, 12);
    shape.vocabulary = shape.codes = pick(rng_, 6, 60);
    shape.neighbours = 4;
    shape.bad_rows = trial % 4 == 0 ? 0.1 : 0;
    ops::VerifyOptions options;
    options.rule = static_cast<Rule>(trial % 5);
    shape.chain = options.rule == Rule::block;
    VerifyProblem problem(rng_, shape);
    options.neighbours = problem.neighbours;
    options.numbers = numbers_of(options.rule, {options.rule == Rule::lantern ? 0.1F : 2.0F});
    options.k = 4;
    if (trial % 7 == 0) problem.tree.temperature.zero_();
    ops::ScoredTree& tree = problem.tree;
    tree.target = filtered(tree.target.values.log());
    if (trial % 3 != 0) tree.draft = filtered(tree.draft.values.log());
    const ops::Verified lazy = ops::verify_tree(tree, options);
    tree.target = ops::probabilities(tree.target);
    tree.draft = ops::probabilities(tree.draft);
    const ops::Verified plain = ops::verify_tree(tree, options);
    SCOPED_TRACE("trial " + std::to_string(trial) + " " + to_string(options.rule));
    EXPECT_TRUE(lazy.path.equal(plain.path));
    EXPECT_TRUE(lazy.count.equal(plain.count));
    EXPECT_TRUE(lazy.token.equal(plain.token));
    EXPECT_TRUE(lazy.status.equal(plain.status));
    EXPECT_TRUE(same_bits(lazy.final, plain.final));
    accepted += lazy.count.sum().item<int64_t>();
  }
  EXPECT_GT(accepted, 50);
}

TEST_P(DistributionTest, RowsOfBothKindsAreJoined) {
  const at::Tensor logits = random_tensor(rng_, {2, 5, 30}, dtype(), 2);
  const at::Tensor one = at::full({2}, 1.0, at::kFloat), k = at::full({2}, 9, at::kLong);
  const auto part = [&](int64_t first, int64_t count) {
    return ops::guide_and_filter(logits.narrow(1, first, count).contiguous(), {one, one, k, one, "ar"});
  };
  const at::Tensor whole = ops::probabilities(part(0, 5));
  EXPECT_TRUE(same_bits(ops::probabilities(ops::cat({part(0, 2), part(2, 3)})), whole));
  const Distributions plain =
      ops::cat({ops::probabilities(part(0, 4)), Distributions(ops::probabilities(part(4, 1)))});
  EXPECT_FALSE(plain.statistics.defined());
  EXPECT_TRUE(same_bits(plain.values, whole));
}

INSTANTIATE_TEST_SUITE_P(, DistributionTest, all_cases(), case_name);

TEST(DistributionErrorsTest, NameTheArgument) {
  const at::Tensor one = at::full({1}, 1.0, at::kFloat), uniforms = at::full({1, 2}, 0.5, at::kFloat);
  const at::Tensor logits = at::zeros({2, 2, 5});
  const auto message = [&](const Distributions& rows) {
    return message_of([&] { ops::sample(rows, uniforms, one); });
  };
  EXPECT_THAT(message({logits, at::zeros({1, 3, 7})}),
              HasSubstr("sample: statistics has shape [1, 3, 7], expected [-1, 2, 7]"));
  EXPECT_THAT(message({logits, at::zeros({1, 2, 6})}), HasSubstr("expected [-1, 2, 7]"));
  EXPECT_THAT(message({at::zeros({3, 2, 5}), at::zeros({1, 2, 7})}), HasSubstr("expected 1 or 2 sequences"));
  EXPECT_THAT(message({logits.to(at::kInt), at::zeros({1, 2, 7})}), HasSubstr("values have dtype Int"));
  EXPECT_THAT(message(logits.to(at::kHalf)), HasSubstr("values has dtype Half"));
}

}  // namespace
}  // namespace lamplighter::test
