#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "kernels/ops.h"
#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/trees/dynamic_trees.h"
#include "tests/reference/dynamic.h"

namespace lamplighter::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One image's tree against the host's; entries beyond its nodes are padding.
void expect_tree(const Reranked& got, int64_t image, const reference::DynamicTree& expected) {
  const auto kept = static_cast<int64_t>(expected.pool_index.size());
  const auto row = [&](const at::Tensor& t, int64_t count) { return values(t[image].slice(0, 0, count)); };
  EXPECT_EQ(row(got.tokens, kept + 1), expected.tokens);
  EXPECT_EQ(row(got.parents, kept + 1), expected.parents);
  EXPECT_EQ(row(got.depths, kept + 1), expected.depths);
  EXPECT_EQ(row(got.mask, kept + 1),
            std::vector<int64_t>(expected.ancestors.begin(), expected.ancestors.end()));
  EXPECT_EQ(row(got.pool_index, kept), expected.pool_index);
  for (int64_t node = kept + 1; node < got.tokens.size(1); ++node) {
    EXPECT_EQ(got.tokens[image][node].item<int64_t>(), 0);
    EXPECT_EQ(got.parents[image][node].item<int64_t>(), -1);
    EXPECT_EQ(got.depths[image][node].item<int64_t>(), 0);
    EXPECT_EQ(got.mask[image][node][0].item<int64_t>(), static_cast<int64_t>(uint64_t{1} << node));
    EXPECT_EQ(got.pool_index[image][node - 1].item<int64_t>(), -1);
  }
}

// Indices of the k largest, largest first, ties by smaller index.
std::vector<int64_t> best_of(const std::vector<double>& scores, int64_t k) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(k));
  return order;
}

at::Tensor distribution(std::mt19937& rng, int64_t vocabulary, int64_t kept) {
  const at::Tensor logits = random_tensor(rng, {1, 1, vocabulary}, at::kFloat, 2);
  const at::Tensor one = at::full({1}, 1.0F);
  return ops::probabilities(
      ops::guide_and_filter(logits, {one, one, at::full({1}, kept, at::kLong), one, "ar"}))[0][0];
}

class DynamicTest : public KernelTest {};

TEST_P(DynamicTest, ExpansionIsThatOfTheHost) {
  for (int trial = 0; trial < 150; ++trial) {
    const int64_t vocabulary = trial < 20 ? trial + 1 : pick(rng_, 20, 5000);
    const int64_t images = pick(rng_, 1, 2), width = pick(rng_, 1, 11);
    const int64_t k = pick(rng_, 1, std::min<int64_t>(vocabulary, trial % 9 == 0 ? 64 : 12));
    at::Tensor p = random_tensor(rng_, {images, width, vocabulary}, at::kFloat, 3).softmax(-1);
    if (trial % 3 == 0) p = (p * 300).round() / 300;  // many ties and zeros
    const at::Tensor scores = -random_tensor(rng_, {images, width}, at::kFloat).abs();
    if (trial % 4 == 0) scores.select(1, 0).fill_(-kInfinity);
    const auto [tokens, pool_scores, frontier] = ops::expand_dynamic(p, scores, k);
    for (int64_t image = 0; image < images; ++image) {
      std::vector<std::vector<double>> rows;
      for (int64_t slot = 0; slot < width; ++slot) rows.push_back(doubles(p[image][slot]));
      const reference::Expansion expected = reference::expand_dynamic(rows, doubles(scores[image]), k);
      EXPECT_EQ(values(tokens[image]), expected.tokens) << "trial " << trial;
      const std::vector<double> got = doubles(pool_scores[image]);
      for (size_t i = 0; i < got.size(); ++i) {
        if (std::isinf(expected.scores[i])) {
          EXPECT_EQ(got[i], expected.scores[i]);
        } else {
          EXPECT_NEAR(got[i], expected.scores[i], 4e-6);
        }
      }
      EXPECT_EQ(values(frontier[image]), best_of(got, k)) << "trial " << trial;
    }
  }
}

// Whole trees over random draft models: the operator's tree equals the host's for the same pool.
TEST_P(DynamicTest, TreesAreThoseOfTheHost) {
  for (int trial = 0; trial < 40; ++trial) {
    const int64_t images = pick(rng_, 1, 2), k = pick(rng_, 1, 10), passes = pick(rng_, 0, 4);
    const int64_t vocabulary = pick(rng_, k, 60), kept = trial % 3 == 0 ? pick(rng_, 1, k) : 0;
    std::map<std::pair<int64_t, Path>, at::Tensor> rows;
    const DraftModel drafter = [&](int64_t image, const Path& path) {
      at::Tensor& row = rows[{image, path}];
      if (!row.defined()) row = distribution(rng_, vocabulary, kept);
      return row;
    };
    const Pool pool = grow(drafter, images, k, passes);
    const int64_t nodes = pick(rng_, 0, std::min<int64_t>(63, pool.tokens.size(1)));
    const Reranked got = reranked(pool, nodes);
    ASSERT_THAT(got.mask.sizes().vec(), ElementsAre(images, nodes + 1, 1));
    for (int64_t image = 0; image < images; ++image) {
      std::vector<std::vector<int64_t>> frontiers;
      for (int64_t pass = 0; pass < passes; ++pass) frontiers.push_back(values(pool.frontiers[image][pass]));
      expect_tree(got, image,
                  reference::rerank_dynamic(values(pool.tokens[image]), doubles(pool.scores[image]),
                                            frontiers, k, nodes));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DynamicTest, ::testing::Combine(instruction_sets(), ::testing::Values(at::kFloat)),
                         case_name);

TEST(Dynamic, EqualProbabilitiesGoToTheSmallerId) {
  const at::Tensor p = at::tensor({0.2F, 0.3F, 0.2F, 0.3F, 0.0F}).reshape({1, 1, 5});
  const auto [tokens, scores, frontier] = ops::expand_dynamic(p, at::zeros({1, 1}), 4);
  EXPECT_THAT(values(tokens), ElementsAre(1, 3, 0, 2));
  EXPECT_THAT(values(frontier), ElementsAre(0, 1, 2, 3));
}

TEST(Dynamic, ImpossibleTokensFillUpInOrder) {
  const at::Tensor p = at::tensor({0.0F, 0.0F, 1.0F, 0.0F}).reshape({1, 1, 4});
  const auto [tokens, scores, frontier] = ops::expand_dynamic(p, at::full({1, 1}, -0.5F), 4);
  EXPECT_THAT(values(tokens), ElementsAre(2, 0, 1, 3));
  EXPECT_THAT(doubles(scores), ElementsAre(-0.5, -kInfinity, -kInfinity, -kInfinity));
  const auto [none, impossible, order] = ops::expand_dynamic(at::zeros({1, 2, 3}), at::zeros({1, 2}), 2);
  EXPECT_THAT(values(none), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(doubles(impossible), Each(-kInfinity));
  EXPECT_THAT(values(order), ElementsAre(0, 1));
}

// p a little above 1, as rounding may leave it, must not lift a child above its parent.
TEST(Dynamic, ScoresNeverRise) {
  const at::Tensor p = at::tensor({1.0000001F, 0.0F}).reshape({1, 1, 2});
  const auto result = ops::expand_dynamic(p, at::full({1, 1}, -3.0F), 1);
  EXPECT_EQ(std::get<1>(result).item<float>(), -3);
}

TEST(Dynamic, MistakesAreErrors) {
  const at::Tensor p = at::full({2, 3, 5}, 0.2F), scores = at::zeros({2, 3});
  const auto expand = [&](const at::Tensor& a, const at::Tensor& b, int64_t k) {
    return message_of([&] { ops::expand_dynamic(a, b, k); });
  };
  EXPECT_THAT(expand(p, scores, 6), HasSubstr("expand_dynamic: k is 6, expected 1..5"));
  EXPECT_THAT(expand(p, scores.slice(1, 0, 2), 2), HasSubstr("contiguous"));
  EXPECT_THAT(expand(p, at::zeros({2, 4}), 2), HasSubstr("scores has shape [2, 4], expected [2, 3]"));
  EXPECT_THAT(expand(p.to(at::kHalf), scores, 2), HasSubstr("dtype Half"));
  EXPECT_THAT(expand(at::zeros({1, 0, 5}), at::zeros({1, 0}), 2), HasSubstr("at least one row"));
  const at::Tensor tokens = at::zeros({2, 6}, at::kLong), frontiers = at::zeros({2, 1, 2}, at::kLong);
  const auto rerank = [&](const at::Tensor& a, const at::Tensor& b, int64_t nodes) {
    return message_of([&] { ops::rerank_dynamic(tokens, a, b, nodes); });
  };
  EXPECT_THAT(rerank(at::zeros({2, 6}), frontiers, 7), HasSubstr("nodes is 7, expected 0..6"));
  EXPECT_THAT(rerank(at::zeros({2, 5}), frontiers, 1), HasSubstr("scores has shape [2, 5], expected [2, 6]"));
  EXPECT_THAT(rerank(at::zeros({2, 6}), at::zeros({2, 1, 3}, at::kLong), 1), HasSubstr("tokens has shape"));
}

// Frontiers that name no candidate give a tree all the same: their nodes hang below the root.
TEST(Dynamic, WildFrontiersStayInBounds) {
  const at::Tensor frontiers = at::tensor({int64_t{-5}, int64_t{1} << 60}).reshape({1, 1, 2});
  const auto tree = ops::rerank_dynamic(at::zeros({1, 6}, at::kLong), at::zeros({1, 6}), frontiers, 6);
  EXPECT_THAT(values(std::get<1>(tree)), ElementsAre(-1, 0, 0, 0, 0, 0, 0));
}

TEST(Dynamic, CudaGivesTheSameBits) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  std::mt19937 rng(5);
  for (int trial = 0; trial < 40; ++trial) {
    const int64_t vocabulary = pick(rng, 12, 20000), k = pick(rng, 1, 12), width = trial % 2 == 0 ? 1 : k;
    at::Tensor p = random_tensor(rng, {2, width, vocabulary}, at::kFloat, 2).softmax(-1);
    if (trial % 3 == 0) p = (p * 3000).round() / 3000;
    const at::Tensor scores = -random_tensor(rng, {2, width}, at::kFloat).abs();
    const auto host = ops::expand_dynamic(p, scores, k);
    const auto device = ops::expand_dynamic(p.to(at::kCUDA), scores.to(at::kCUDA), k);
    EXPECT_TRUE(std::get<0>(device).cpu().equal(std::get<0>(host)));
    EXPECT_TRUE(same_bits(std::get<1>(device).cpu(), std::get<1>(host)));
    EXPECT_TRUE(std::get<2>(device).cpu().equal(std::get<2>(host)));
    if (width != 1) continue;
    const DraftModel drafter = [&](int64_t image, const Path&) { return p[image][0]; };
    const Pool pool = grow(drafter, 2, k, 3);
    const int64_t nodes = std::min<int64_t>(63, pool.tokens.size(1));
    const Pool moved = {pool.tokens.to(at::kCUDA), pool.scores.to(at::kCUDA), pool.frontiers.to(at::kCUDA)};
    const Reranked a = reranked(pool, nodes), b = reranked(moved, nodes);
    EXPECT_TRUE(b.tokens.cpu().equal(a.tokens) && b.parents.cpu().equal(a.parents) &&
                b.depths.cpu().equal(a.depths) && b.mask.cpu().equal(a.mask) &&
                b.pool_index.cpu().equal(a.pool_index));
  }
}

}  // namespace
}  // namespace lamplighter::test
