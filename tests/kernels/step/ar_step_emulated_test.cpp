#include "tests/kernels/common/emulated_device.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "kernels/step/ar_step_cuda.h"
#include "tests/kernels/step/ar_step_cases.h"

// CUDA's ar_step on an emulated device: the tokens and counters of the CPU's guide_and_filter, verify_tree
// and commit_tokens.
namespace lamplighter::test {
namespace {

void expect_alike(ArStepCase& got, ArStepCase& expected) {
  const std::vector<at::Tensor*> a = got.changed(), b = expected.changed();
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(at::equal(*a[i], *b[i])) << "tensor " << i << "\n" << *a[i] << "\n" << *b[i];
  }
}

// run(args, memory) on a copy of `given`, against the CPU.
template <class Run>
void expect_like_cpu(const ArStepCase& given, Run run) {
  ArStepCase expected = given.copy(), got = given.copy();
  expected.run_apart();
  ArStepArgs args = ar_step_args(got.step, got.state);
  const at::Tensor statistics = filter_statistics(args.filter, got.step.logits);
  at::Tensor memory = at::full({args.images * 2 * args.filter.logits.vocabulary},
                               std::numeric_limits<float>::quiet_NaN(), at::kFloat);
  run(args, memory.mutable_data_ptr<float>());
  expect_alike(got, expected);
}

template <class Shape>
void expect_cluster_like_cpu(const ArStepCase& given) {
  expect_like_cpu(given, [](const ArStepArgs& args, float* memory) {
    emulated::launch(
        {static_cast<unsigned>(args.images * Shape::kBlocks)}, {Shape::kThreads},
        sizeof(sampling::ClusterStorage<Shape>), [&] { ar_step_cluster_kernel<Shape>(args, memory); },
        Shape::kBlocks);
  });
}

// Of an eighth of the real threads, so that many cases take seconds.
TEST(ArStepEmulatedTest, ClustersSampleAndCommitLikeTheCpu) {
  std::mt19937 rng(55);
  for (int trial = 0; trial < 91; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    emulated::shuffle() = static_cast<unsigned>(trial);
    const int64_t vocabulary = trial % 4 == 0 ? pick(rng, 1, 300) : 8 * pick(rng, 1, 256);
    const ArStepCase given = ar_step_case(rng, trial, trial % 5 == 0 ? 3 : 1, vocabulary);
    expect_cluster_like_cpu<sampling::RowShape<4, 64, 8>>(given);
    if (trial % 3 == 0) expect_cluster_like_cpu<sampling::RowShape<1, 128, 16>>(given);
  }
  emulated::shuffle() = 0;
}

TEST(ArStepEmulatedTest, BlocksSampleAndCommitLikeTheCpu) {
  std::mt19937 rng(56);
  for (int trial = 0; trial < 14; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    emulated::shuffle() = static_cast<unsigned>(trial);
    const ArStepCase given = ar_step_case(rng, trial, 2, pick(rng, 1, 3000));
    expect_like_cpu(given, [&](const ArStepArgs& args, float* memory) {
      const size_t shared =
          trial % 2 == 0 ? 2 * static_cast<size_t>(args.filter.logits.vocabulary) * sizeof(float) : 0;
      emulated::launch({2}, {kRowThreads}, shared,
                       [&] { ar_step_kernel(args, trial % 2 == 0 ? nullptr : memory); });
    });
  }
  emulated::shuffle() = 0;
}

// The shapes that a device runs, full: bf16, guided, top-k as models use it.
TEST(ArStepEmulatedTest, WholeRows) {
  std::mt19937 rng(57);
  ArStepCase small = ar_step_case(rng, 1, 1, 16384);
  small.step.logits = small.step.logits.to(at::kBFloat16);
  small.step.filtering.top_k.fill_(1000);
  small.state.steps.fill_(3);
  expect_cluster_like_cpu<sampling::RowShape<8, 256, 8>>(small);
  expect_cluster_like_cpu<sampling::RowShape<1, 512, 32>>(small);
  ArStepCase large = ar_step_case(rng, 2, 1, 65536);
  large.step.filtering.top_k.fill_(2000);
  large.state.steps.fill_(3);
  expect_cluster_like_cpu<sampling::RowShape<8, 1024, 8>>(large);
}

}  // namespace
}  // namespace lamplighter::test
