#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "kernels/window/window_args.h"
#include "tests/kernels/window/window_problem.h"

#include "tests/kernels/common/emulated_device.h"

#include "kernels/window/window_cuda.h"

// The CUDA kernels of a window on an emulated device against the CPU's operators: equal bits.
namespace lamplighter::test {
namespace {

template <class Kernel>
void on_device(int64_t blocks, Kernel kernel) {
  emulated::launch({static_cast<unsigned>(blocks)}, {kRowThreads}, 0, kernel);
}

// The same rows as guided logits that no filter cuts.
ops::Distributions as_logits(const at::Tensor& probabilities) {
  const int64_t images = probabilities.size(0);
  const at::Tensor each = at::ones({images}, at::kFloat), none = at::zeros({images}, at::kLong);
  return ops::guide_and_filter(probabilities.log(), {each, each, none, each, "ar"});
}

TEST(WindowKernels, RenewedDraftsAreThoseOfTheCpu) {
  std::mt19937 rng(23);
  for (int trial = 0; trial < 16; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    emulated::shuffle() = static_cast<unsigned>(trial);
    const int64_t images = pick(rng, 1, 2), nodes = pick(rng, 2, 6);
    const int64_t vocabulary = trial % 8 == 7 ? 1500 : pick(rng, 2, 60);
    WindowProblem problem =
        window_problem(rng, images, nodes, vocabulary, trial % 4 == 0 ? 0.1 : 0, trial % 3 == 0 ? 0.1 : 0);
    ops::ScoredTree& tree = problem.tree;
    if (trial % 2 == 0) tree.target = as_logits(tree.target.values);
    if (trial % 9 == 8) tree.temperature.zero_();
    const bool keep = trial % 5 != 4;
    const auto [tokens, rows] = ops::renew_window(tree, problem.count, keep);
    RenewWindowArgs args = renew_window_args(tree, problem.count, keep);
    at::Tensor own_tokens = at::empty_like(tokens), own_rows = at::empty_like(rows);
    at::Tensor scratch = at::empty({images * (nodes - 1), vocabulary}, at::kFloat);
    args.tokens = own_tokens.mutable_data_ptr<int64_t>();
    args.rows = own_rows.mutable_data_ptr<float>();
    float* spare = scratch.mutable_data_ptr<float>();
    on_device(images * (nodes - 1), [&] { renew_window_kernel(args, spare); });
    EXPECT_TRUE(at::equal(own_tokens, tokens)) << own_tokens << tokens;
    EXPECT_TRUE(same_bits(own_rows, rows));
  }
}

TEST(WindowKernels, RenewedFansAreThoseOfTheCpu) {
  std::mt19937 rng(31);
  for (int trial = 0; trial < 16; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    emulated::shuffle() = static_cast<unsigned>(trial);
    VerifyShape shape;
    shape.images = pick(rng, 1, 2);
    shape.nodes = pick(rng, 1, 14);
    shape.vocabulary = shape.codes = trial % 8 == 7 ? 1500 : pick(rng, 2, 60);
    shape.bad_rows = trial % 4 == 0 ? 0.1 : 0;
    shape.padding = trial % 3 == 0 ? 0.1 : 0;
    const int64_t slots = pick(rng, 1, 4), count = pick(rng, 1, 3);
    FanProblem problem = fan_problem(rng, shape, slots, count);
    if (trial % 2 == 0) problem.tree.target = as_logits(problem.tree.target.values);
    if (trial % 9 == 8) problem.tree.temperature.zero_();
    const auto [candidates, rows, left] = ops::renew_fan(problem.tree, problem.nodes, problem.samples);
    RenewFanArgs args = renew_fan_args(problem.tree, problem.nodes, problem.samples);
    at::Tensor own_candidates = at::empty_like(candidates), own_rows = at::empty_like(rows),
               own_left = at::empty_like(left);
    at::Tensor scratch = at::empty({shape.images * slots, shape.vocabulary}, at::kFloat);
    args.candidates = own_candidates.mutable_data_ptr<int64_t>();
    args.rows = own_rows.mutable_data_ptr<float>();
    args.left = own_left.mutable_data_ptr<float>();
    float* spare = scratch.mutable_data_ptr<float>();
    on_device(shape.images * slots, [&] { renew_fan_kernel(args, spare); });
    EXPECT_TRUE(at::equal(own_candidates, candidates)) << own_candidates << candidates;
    EXPECT_TRUE(same_bits(own_rows, rows));
    EXPECT_TRUE(same_bits(own_left, left));
  }
}

TEST(WindowKernels, GuessesAreThoseOfTheCpu) {
  std::mt19937 rng(29);
  for (int trial = 0; trial < 20; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const int64_t slots = pick(rng, 1, 9), vocabulary = pick(rng, 2, 1300), known = pick(rng, 0, slots);
    const at::Tensor tokens = integers(
        {2, slots}, [&](int64_t i) { return i % slots < known ? pick(rng, 0, vocabulary - 1) : -1; });
    const at::Tensor rows = random_tensor(rng, {2, slots, vocabulary}, at::kFloat, 1).abs();
    at::Tensor uniforms = at::empty({2, slots}, at::kFloat);
    for (int64_t i = 0; i < 2 * slots; ++i) uniforms.mutable_data_ptr<float>()[i] = grid_uniform(rng);
    const ops::Guesses guesses{uniforms,
                               integers({2}, [&](int64_t) { return pick(rng, 1, 20); }),
                               integers({2}, [&](int64_t) { return pick(rng, 0, vocabulary - 1); }),
                               integers({2, 32}, [&](int64_t) { return pick(rng, 0, vocabulary - 1); }),
                               pick(rng, 1, 8),
                               pick(rng, 1, vocabulary),
                               static_cast<WindowFill>(trial % 5)};
    at::Tensor expected_rows = rows.clone(), own_rows = rows.clone(), own = at::empty_like(tokens);
    const at::Tensor expected = ops::fill_window(tokens, expected_rows, guesses);
    FillWindowArgs args = fill_window_args(tokens, own_rows, guesses);
    args.out = own.mutable_data_ptr<int64_t>();
    on_device(2 * slots, [&] { fill_window_kernel(args); });
    EXPECT_TRUE(at::equal(own, expected)) << own << expected;
    EXPECT_TRUE(same_bits(own_rows, expected_rows));
  }
}

}  // namespace
}  // namespace lamplighter::test
