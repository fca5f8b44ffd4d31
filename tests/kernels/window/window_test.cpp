#include <ATen/Context.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "kernels/common/isa.h"
#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/window/window_problem.h"

namespace lamplighter::test {
namespace {

class WindowTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (limit_isa(GetParam()) != GetParam()) GTEST_SKIP() << "not on this CPU";
  }
  void TearDown() override { limit_isa(kBestIsa); }

  std::mt19937 rng_{17};
};

// The draft behind a node as a tree of two nodes: what verify_tree leaves there.
int64_t verified_alone(const ops::ScoredTree& tree, int64_t image, int64_t node) {
  const int64_t nodes = tree.tokens.size(1), child = node + 1 < nodes ? 1 : 0;
  const auto part = [&](const at::Tensor& tensor, int64_t begin, int64_t count) {
    return tensor.narrow(0, image, 1).narrow(1, begin, count).contiguous();
  };
  ops::ScoredTree alone;
  alone.target = part(tree.target.values, node, 1 + child);
  alone.draft = part(tree.draft.values, child == 0 ? 0 : node, 1);
  alone.tokens = part(tree.tokens, node, 1 + child);
  alone.parents = integers({1, 1 + child}, [](int64_t i) { return i - 1; });
  alone.draft_rows = integers({1, 1 + child}, [&](int64_t i) { return i < child ? 0 : -1; });
  alone.uniforms = at::cat({part(tree.uniforms, nodes + node, 1), part(tree.uniforms, node + child, 1)}, 1);
  alone.temperature = tree.temperature.narrow(0, image, 1);
  alone.depth = child;
  const ops::Verified verified = ops::verify_tree(alone, {});
  return verified.count.item<int64_t>() == 1 ? alone.tokens[0][1].item<int64_t>()
                                             : verified.token.item<int64_t>();
}

TEST_P(WindowTest, ADraftStaysOrIsSampledAgainAsTheRuleWould) {
  int64_t kept = 0, sampled = 0, behind = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t nodes = pick(rng_, 2, 12), vocabulary = pick(rng_, 2, 40);
    WindowProblem problem = window_problem(rng_, 2, nodes, vocabulary, 0, trial % 3 == 0 ? 0.2 : 0);
    ops::ScoredTree& tree = problem.tree;
    if (trial % 7 == 6) tree.temperature.zero_();
    const auto [tokens, rows] = ops::renew_window(tree, problem.count, true);
    for (int64_t image = 0; image < 2; ++image) {
      for (int64_t slot = 0; slot + 1 < nodes; ++slot) {
        const int64_t node = problem.count[image].item<int64_t>() + 1 + slot;
        const auto token = tokens[image][slot].item<int64_t>();
        const at::Tensor row = rows[image][slot];
        if (node >= nodes) {
          EXPECT_EQ(token, -1);
          EXPECT_EQ(row.sum().item<float>(), 0.0F);
          ++behind;
          continue;
        }
        EXPECT_EQ(token, verified_alone(tree, image, node)) << "trial " << trial << " node " << node;
        EXPECT_TRUE(at::equal(row, tree.target.values[image][node]));
        const bool same = node + 1 < nodes && token == tree.tokens[image][node + 1].item<int64_t>();
        ++(same ? kept : sampled);
      }
    }
  }
  EXPECT_GT(kept, 50);
  EXPECT_GT(sampled, 50);
  EXPECT_GT(behind, 50);
}

// Without keeping, a token is sampled from its row, and the draft does not matter.
TEST_P(WindowTest, FreshTokensAreSampledFromTheirRows) {
  for (int trial = 0; trial < 30; ++trial) {
    const int64_t nodes = pick(rng_, 2, 12);
    WindowProblem problem = window_problem(rng_, 1, nodes, pick(rng_, 2, 40));
    problem.count.zero_();
    const at::Tensor tokens = std::get<0>(ops::renew_window(problem.tree, problem.count, false));
    const at::Tensor sampled =
        ops::sample(problem.tree.target, problem.tree.uniforms.narrow(1, nodes, nodes).contiguous(),
                    problem.tree.temperature);
    EXPECT_TRUE(at::equal(tokens, sampled.slice(1, 1))) << tokens << sampled;
  }
}

TEST_P(WindowTest, BadRowsLeaveNothing) {
  WindowProblem problem = window_problem(rng_, 1, 4, 9);
  problem.count.zero_();
  problem.tree.target.values[0][2].fill_(std::numeric_limits<float>::quiet_NaN());
  const auto [tokens, rows] = ops::renew_window(problem.tree, problem.count, true);
  EXPECT_GE(tokens[0][0].item<int64_t>(), 0);
  EXPECT_EQ(tokens[0][1].item<int64_t>(), -1);
  EXPECT_EQ(rows[0][1].sum().item<float>(), 0.0F);
  EXPECT_GE(tokens[0][2].item<int64_t>(), 0);
}

// What a node's children leave of its row, in double, and the first of them where it is right.
struct Left {
  std::vector<double> row;
  int64_t kept = -1;
  bool close = false;  // a test that rounding may decide
};

Left left_behind(const ops::ScoredTree& tree, int64_t image, int64_t node) {
  const auto values = [](const at::Tensor& row) {
    const float* p = row.const_data_ptr<float>();
    return std::vector<double>(p, p + row.numel());
  };
  const auto norm = [](std::vector<double>& row) {
    double sum = 0;
    for (const double p : row) sum += p;
    for (double& p : row) p /= sum;
    return sum > 1e-6;
  };
  Left left{values(tree.target.values[image][node])};
  const auto draft_row = tree.draft_rows[0][node].item<int64_t>();
  if (draft_row < 0) return left;
  std::vector<double> draft = values(tree.draft.values[image][draft_row]);
  bool first = true;
  for (int64_t child = node + 1; child < tree.tokens.size(1); ++child) {
    if (tree.parents[0][child].item<int64_t>() != node) continue;
    const auto token = static_cast<size_t>(tree.tokens[image][child].item<int64_t>());
    if (!norm(draft)) left.close = true;
    const double gap = tree.uniforms[image][child].item<double>() * draft[token] - left.row[token];
    left.close = left.close || std::abs(gap) < 1e-6;
    for (size_t i = 0; i < draft.size(); ++i) left.row[i] = std::max(left.row[i] - draft[i], 0.0);
    if (!norm(left.row)) left.close = true;
    draft[token] = 0;
    if (first && gap < 0) {
      left.kept = static_cast<int64_t>(token);
      break;
    }
    first = false;
  }
  return left;
}

TEST_P(WindowTest, AFanIsRenewedAsThePublishedProgramDoes) {
  int64_t kept = 0, sampled = 0, none = 0;
  for (int trial = 0; trial < 60; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    VerifyShape shape;
    shape.images = 2;
    shape.nodes = pick(rng_, 2, 14);
    shape.vocabulary = shape.codes = pick(rng_, 16, 50);
    const int64_t slots = pick(rng_, 1, 6), count = pick(rng_, 1, 3);
    const FanProblem problem = fan_problem(rng_, shape, slots, count);
    const auto [candidates, rows, left] = ops::renew_fan(problem.tree, problem.nodes, problem.samples);
    for (int64_t index = 0; index < 2 * slots; ++index) {
      const int64_t image = index / slots, slot = index % slots;
      const auto node = problem.nodes[image][slot].item<int64_t>();
      if (node < 0) {
        EXPECT_TRUE(at::equal(candidates[image][slot], at::full({count}, -1, at::kLong)));
        EXPECT_EQ(rows[image][slot].sum().item<float>() + left[image][slot].sum().item<float>(), 0.0F);
        ++none;
        continue;
      }
      EXPECT_TRUE(at::equal(rows[image][slot], problem.tree.target.values[image][node]));
      const Left expected = left_behind(problem.tree, image, node);
      if (expected.close) continue;
      at::Tensor rest = left[image][slot].clone();
      const at::Tensor row = at::tensor(expected.row).to(at::kFloat);
      EXPECT_LT((rest - row).abs().max().item<float>(), 5e-6F);
      ++(expected.kept < 0 ? sampled : kept);
      for (int64_t candidate = 0; candidate < count; ++candidate) {
        const auto token = candidates[image][slot][candidate].item<int64_t>();
        const int64_t sample = expected.kept < 0 ? candidate : candidate - 1;
        if (sample < 0) {
          EXPECT_EQ(token, expected.kept);
          continue;
        }
        const at::Tensor uniform = problem.samples[image][slot][sample].view({1, 1});
        EXPECT_EQ(token, ops::sample(rest.view({1, 1, -1}), uniform, at::ones({1})).item<int64_t>());
        rest[token] = 0;
      }
    }
  }
  EXPECT_GT(kept, 20);
  EXPECT_GT(sampled, 50);
  EXPECT_GT(none, 10);
}

// A window of six slots, two of them known, behind `steps` codes 10, 11, .. of an image with four a row.
at::Tensor filled(WindowFill fill, int64_t steps, at::Tensor& rows) {
  const at::Tensor tokens = integers({1, 6}, [](int64_t i) { return i < 2 ? 3 + i : -1; });
  rows = at::zeros({1, 6, 20}, at::kFloat);
  rows[0][1][7] = 1;  // the most probable code of the second slot
  const at::Tensor sampled = integers({1, 16}, [](int64_t i) { return 10 + i % 8; });
  at::Tensor uniforms = at::empty({1, 6}, at::kFloat);
  for (int64_t i = 0; i < 6; ++i) uniforms[0][i] = 0.1F * static_cast<float>(i);  // codes 0, 1, 3, 5, 7, 9
  return ops::fill_window(
      tokens, rows,
      {uniforms, at::full({1}, steps, at::kLong), at::full({1}, 2, at::kLong), sampled, 4, 18, fill});
}

TEST_P(WindowTest, NewPlacesAreGuessed) {
  const auto expect = [](WindowFill fill, int64_t steps, std::vector<int64_t> tokens) {
    at::Tensor rows;
    const at::Tensor got = filled(fill, steps, rows);
    EXPECT_TRUE(at::equal(got, integers({1, 6}, [&](int64_t i) { return tokens[static_cast<size_t>(i)]; })))
        << kWindowFills[static_cast<size_t>(fill)] << " at " << steps << ":" << got;
    if (fill == WindowFill::uniform) return;
    EXPECT_TRUE(at::equal(rows.slice(1, 2), at::one_hot(got.slice(1, 2), 20).to(at::kFloat)));
  };
  expect(WindowFill::uniform, 5, {3, 4, 3, 5, 7, 9});
  expect(WindowFill::random, 5, {3, 4, 3, 5, 7, 9});
  expect(WindowFill::repeat, 5, {3, 4, 4, 5, 4, 4});  // position 8 begins a row
  expect(WindowFill::sample, 5, {3, 4, 7, 5, 7, 7});
  expect(WindowFill::above, 5, {3, 4, 13, 14, 7, 9});  // positions 9 and 10 lie below drafts
  expect(WindowFill::above, 0, {3, 4, 3, 5, 7, 9});
}

// The distribution of a code sampled evenly, exactly: the uniforms that lead to it over their number.
TEST_P(WindowTest, EvenRowsAreTheDistributionOfTheirCodes) {
  constexpr int64_t kCodes = 3;
  at::Tensor rows = at::zeros({1, 1, 5}, at::kFloat);
  const at::Tensor none = integers({1, 1}, [](int64_t) { return -1; }), one = at::zeros({1}, at::kLong);
  ops::fill_window(none, rows,
                   {at::zeros({1, 1}, at::kFloat), one, one, none, 1, kCodes, WindowFill::uniform});
  std::vector<int64_t> counts(5);
  for (int64_t k = 0; k < 1 << 24; ++k)
    ++counts[static_cast<size_t>(static_cast<double>(static_cast<float>(k) * 0x1p-24F) * kCodes)];
  for (size_t code = 0; code < 5; ++code) {
    EXPECT_EQ(rows[0][0][static_cast<int64_t>(code)].item<float>(),
              static_cast<float>(counts[code]) * 0x1p-24F);
  }
}

INSTANTIATE_TEST_SUITE_P(Window, WindowTest, instruction_sets(),
                         [](const auto& set) { return isa_name(set.param); });

class CudaWindow : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  }

  static void expect_close(const at::Tensor& device, const at::Tensor& host) {
    EXPECT_LE((device.cpu() - host).abs().max().item<float>(), 1e-6F);
  }

  std::mt19937 rng_{41};
};

TEST_F(CudaWindow, RenewsTheDraftsOfTheCpu) {
  for (int trial = 0; trial < 40; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const WindowProblem problem = window_problem(rng_, 2, pick(rng_, 2, 12), pick(rng_, 2, 3000),
                                                 trial % 4 == 0 ? 0.1 : 0, trial % 3 == 0 ? 0.1 : 0);
    const bool keep = trial % 5 != 4;
    const auto [tokens, rows] = ops::renew_window(problem.tree, problem.count, keep);
    const auto [own_tokens, own_rows] =
        ops::renew_window(on_device(problem.tree, at::kCUDA), problem.count.to(at::kCUDA), keep);
    EXPECT_TRUE(own_tokens.cpu().equal(tokens));
    expect_close(own_rows, rows);
  }
}

TEST_F(CudaWindow, RenewsTheFansOfTheCpu) {
  for (int trial = 0; trial < 40; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    VerifyShape shape;
    shape.images = 2;
    shape.nodes = pick(rng_, 1, 14);
    shape.vocabulary = shape.codes = pick(rng_, 2, 3000);
    const FanProblem problem = fan_problem(rng_, shape, pick(rng_, 1, 4), pick(rng_, 1, 3));
    const auto [tokens, rows, left] = ops::renew_fan(problem.tree, problem.nodes, problem.samples);
    const auto [own_tokens, own_rows, own_left] = ops::renew_fan(
        on_device(problem.tree, at::kCUDA), problem.nodes.to(at::kCUDA), problem.samples.to(at::kCUDA));
    EXPECT_TRUE(own_tokens.cpu().equal(tokens));
    expect_close(own_rows, rows);
    expect_close(own_left, left);
  }
}

}  // namespace
}  // namespace lamplighter::test
