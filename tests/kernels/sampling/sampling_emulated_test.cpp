#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "kernels/ops.h"
#include "tests/kernels/verify/verify_problem.h"

#include "tests/kernels/sampling/emulated_rows.h"

#include "kernels/sampling/sampling_cuda.h"
#include "kernels/trees/dynamic_cuda.h"
#include "kernels/verify/verify_cuda.h"

// The CUDA kernels for sampling, drafting and acceptance on an emulated device against the CPU's operators:
// equal bits, but for the norm of a row, a sum of numbers that round.
namespace lamplighter::test {
namespace {

using SamplingEmulatedTest = EmulatedRowsTest;

TEST_F(SamplingEmulatedTest, StatisticsAreThoseOfTheCpu) {
  for (int trial = 0; trial < 24; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    Rows rows = rows_of(random_logits(trial, 2, 2), trial);
    if (trial == 5) rows.logits[0][1][0].fill_(std::numeric_limits<float>::quiet_NaN());
    if (trial == 9) rows.logits[0][0].fill_(-std::numeric_limits<float>::infinity());
    const at::Tensor expected = rows.filtered().statistics;
    GuideAndFilterArgs args = guide_and_filter_args(rows.logits, rows.filtering());
    const at::Tensor got = filter_statistics(args, rows.logits);
    const int64_t blocks = args.images * args.logits.rows, floats = 2 * args.logits.vocabulary;
    at::Tensor scratch = at::empty({blocks * floats}, at::kFloat);
    float* global = trial % 3 == 2 ? scratch.mutable_data_ptr<float>() : nullptr;
    on_device(blocks, kRowThreads, global == nullptr ? static_cast<size_t>(floats) * sizeof(float) : 0,
              [&] { guide_and_filter_kernel(args, global); });
    expect_statistics(got, expected);
    got.fill_(-1);
    using Shape = sampling::RowShape<4, 256, 8>;
    emulated::launch(
        {static_cast<unsigned>(blocks) * Shape::kBlocks}, {Shape::kThreads},
        sizeof(sampling::ClusterStorage<Shape>),
        [&] { guide_and_filter_cluster_kernel<Shape>(args, scratch.mutable_data_ptr<float>()); },
        Shape::kBlocks);
    expect_statistics(got, expected);
  }
}

TEST_F(SamplingEmulatedTest, SamplesAreThoseOfTheCpu) {
  for (int trial = 0; trial < 16; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const Rows rows = rows_of(random_logits(trial, 2, 2), trial);
    const ops::Distributions lazy = rows.filtered();
    const at::Tensor plain = ops::probabilities(lazy);
    const at::Tensor uniforms = at::full({2, 2}, 0.1 + 0.05 * trial, at::kFloat);
    const int64_t vocabulary = plain.size(2);
    const size_t row = static_cast<size_t>(vocabulary) * sizeof(float);

    ProbabilitiesArgs written = probabilities_args(lazy);
    at::Tensor probabilities = at::empty_like(plain);
    written.out = probabilities.mutable_data_ptr<float>();
    on_device(4, kRowThreads, 0, [&] { probabilities_kernel(written); });
    EXPECT_TRUE(same_bits(probabilities, plain));

    SampleArgs args = sample_args(lazy, uniforms, rows.temperature);
    at::Tensor tokens = at::empty({2, 2}, at::kLong);
    args.out = tokens.mutable_data_ptr<int64_t>();
    on_device(4, kRowThreads, row, [&] { sample_kernel(args, nullptr); });
    EXPECT_TRUE(tokens.equal(ops::sample(plain, uniforms, rows.temperature)));
  }
}

TEST_F(SamplingEmulatedTest, DynamicTreesAreThoseOfTheCpu) {
  for (int trial = 0; trial < 12; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const int64_t k = pick(rng_, 1, 6), vocabulary = trial % 4 == 0 ? 2500 : pick(rng_, 6, 400);
    const Rows rows = rows_of(random_tensor(rng_, {2, k, vocabulary}, at::kFloat, 2), trial);
    const ops::Distributions lazy = rows.filtered();
    const at::Tensor scores = -random_tensor(rng_, {2, k}, at::kFloat).abs();
    ExpandArgs args = expand_args(lazy, scores, k);
    const auto [got_tokens, got_scores, got_frontier] = expand_results(args, scores);
    const int64_t bytes = (4 * vocabulary + k * k) * int64_t{sizeof(float)};
    at::Tensor scratch = at::empty({2 * k, bytes}, at::kByte);
    char* memory = static_cast<char*>(scratch.mutable_data_ptr());
    const bool in_shared = trial % 2 == 0;
    on_device(2 * k, kRowThreads, in_shared ? static_cast<size_t>(vocabulary) * sizeof(float) : 0,
              [&] { expand_kernel(args, memory, bytes, in_shared); });
    on_device(2, kImageThreads, 0, [&] { frontier_kernel(args, memory, bytes); });
    const auto [tokens, pool_scores, frontier] = ops::expand_dynamic(ops::probabilities(lazy), scores, k);
    EXPECT_TRUE(got_tokens.equal(tokens));
    EXPECT_TRUE(same_bits(got_scores, pool_scores));
    EXPECT_TRUE(got_frontier.equal(frontier));
  }
}

TEST_F(SamplingEmulatedTest, RerankedTreesAreThoseOfTheCpu) {
  for (int trial = 0; trial < 12; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    emulated::shuffle() = static_cast<unsigned>(trial);
    const int64_t k = pick(rng_, 1, 8), passes = pick(rng_, 0, 3), pool = k + passes * k * k;
    const at::Tensor tokens = integers({2, pool}, [](int64_t i) { return i % 97; });
    const at::Tensor scores = -(random_tensor(rng_, {2, pool}, at::kFloat).abs() + (tokens * 0 + 1));
    const at::Tensor frontiers = integers({2, passes, k}, [&](int64_t) { return pick(rng_, 0, k - 1); });
    const int64_t nodes = pick(rng_, 0, std::min<int64_t>(pool, 40));
    RerankArgs args = rerank_args(tokens, scores, frontiers, nodes);
    const auto got = rerank_results(args, tokens);
    const int64_t bytes = pool * int64_t{sizeof(int)};
    at::Tensor scratch = at::empty({2, bytes}, at::kByte);
    on_device(2, kImageThreads, 0,
              [&] { rerank_kernel(args, static_cast<char*>(scratch.mutable_data_ptr()), bytes); });
    const auto expected = ops::rerank_dynamic(tokens, scores, frontiers, nodes);
    EXPECT_TRUE(std::get<0>(got).equal(std::get<0>(expected)));
    EXPECT_TRUE(std::get<1>(got).equal(std::get<1>(expected)));
    EXPECT_TRUE(std::get<2>(got).equal(std::get<2>(expected)));
    EXPECT_TRUE(std::get<3>(got).equal(std::get<3>(expected)));
    EXPECT_TRUE(std::get<4>(got).equal(std::get<4>(expected)));
  }
}

// As verify_cuda queues the kernels.
ops::Verified verify_on_device(const ops::ScoredTree& tree, const ops::VerifyOptions& options,
                               bool in_shared) {
  VerifyArgs args = verify_args(tree, options);
  ops::Verified results = verify_results(args, tree);
  const int64_t verifies = args.images * kVerifies;
  const auto floats = static_cast<int64_t>(verify_read_floats(args));
  at::Tensor residuals =
      at::empty({(2 * verifies + args.images * args.levels) * args.vocabulary}, at::kFloat);
  at::Tensor rows = at::empty({verifies * floats}, at::kFloat);
  at::Tensor verdicts = at::empty({args.images, args.nodes}, at::kInt);
  auto* left = residuals.mutable_data_ptr<float>();
  float* reads = in_shared ? nullptr : rows.mutable_data_ptr<float>();
  const size_t shared = in_shared ? static_cast<size_t>(floats) * sizeof(float) : 0;
  if (args.walk != Walk::paths) {
    int* known = verdicts.mutable_data_ptr<int>();
    on_device(verifies, kRowThreads, shared, [&] { verify_nodes_kernel(args, left, reads, floats, known); });
    args.verdicts = known;
  }
  using verification::Rules;
  const auto kernel =
      args.walk == Walk::paths ? verify_tree_kernel<Rules::paths> : verify_tree_kernel<Rules::walks>;
  on_device(args.images, kRowThreads, shared, [&] { kernel(args, left, reads, floats); });
  return results;
}

TEST_F(SamplingEmulatedTest, VerdictsAreThoseOfTheCpu) {
  int64_t accepted = 0, bad = 0;
  const Residual residuals[] = {Residual::paper, Residual::optimal, Residual::official_static,
                                Residual::official_dynamic};
  for (int trial = 0; trial < 60; ++trial) {
    VerifyShape shape;
    shape.images = pick(rng_, 1, 2);
    shape.nodes = trial == 0 ? 1 : pick(rng_, 2, 40);
    shape.vocabulary = shape.codes = trial % 11 == 10 ? 1500 : pick(rng_, 6, 60);
    shape.neighbours = 4;
    shape.bad_rows = trial % 4 == 0 ? 0.1 : 0;
    shape.padding = trial % 3 == 0 ? 0.1 : 0;
    ops::VerifyOptions options;
    options.rule = static_cast<Rule>(trial / 2 % 10);
    options.residual = trial / 2 % 10 < 3 ? residuals[(trial + trial / 20) % 4] : Residual::paper;
    options.sampled = shape.sampled = trial % 7 < 5;
    shape.chain = options.rule == Rule::block;
    VerifyProblem problem(rng_, shape);
    options.neighbours = problem.neighbours;
    options.numbers = numbers_of(options.rule, {options.rule == Rule::lantern ? 0.1F : 2.0F});
    if (options.rule == Rule::grouped) {
      options.numbers = numbers_of(options.rule, {0.2F, 0.5F});
      options.codebook = at::arange(shape.codes * 2, at::kFloat).remainder(1.7).view({-1, 2});
    }
    if (options.rule == Rule::typical) options.numbers = numbers_of(options.rule, {0.1F, 0.5F});
    options.k = 4;
    ops::ScoredTree& tree = problem.tree;
    if (trial % 9 == 8) tree.temperature.zero_();
    if (trial % 2 == 0) tree.target = rows_of(tree.target.values.log(), trial).filtered();
    if (trial % 4 < 2) tree.draft = rows_of(tree.draft.values.log(), trial).filtered();
    const ops::Verified expected = ops::verify_tree(tree, options);
    const ops::Verified got = verify_on_device(tree, options, trial % 3 != 1);
    SCOPED_TRACE("trial " + std::to_string(trial) + " " + to_string(options.rule) + " " +
                 to_string(options.residual));
    EXPECT_TRUE(got.path.equal(expected.path)) << got.path << expected.path;
    EXPECT_TRUE(got.count.equal(expected.count));
    EXPECT_TRUE(got.token.equal(expected.token));
    EXPECT_TRUE(got.status.equal(expected.status));
    EXPECT_TRUE(same_bits(got.final, expected.final));
    accepted += expected.count.sum().item<int64_t>();
    bad += (expected.status > 0).sum().item<int64_t>();
  }
  EXPECT_GT(accepted, 30);
  EXPECT_GT(bad, 0);
}

}  // namespace
}  // namespace lamplighter::test
