#include "tests/kernels/common/emulated_device.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "kernels/step/window_step_cuda.h"
#include "tests/kernels/step/window_step_cases.h"

// CUDA's window_step on an emulated device: the tokens and counters of the CPU's operators one after the
// other, over several cycles.
namespace lamplighter::test {
namespace {

// run(args, memory) on `got`, against the CPU.
template <class Run>
void expect_like_cpu(WindowStepCase& got, Run run) {
  WindowStepCase expected = got.copy();
  const ops::WindowRows rows = expected.run_apart();
  WindowStepArgs args = window_step_args(got.step, got.window, got.state);
  const WindowStepMemory results = window_step_memory(args, got.step);
  const auto floats = static_cast<int64_t>(window_step_floats(args.filter.logits.vocabulary));
  at::Tensor memory = at::full({args.images * args.filter.logits.rows * floats},
                               std::numeric_limits<float>::quiet_NaN(), at::kFloat);
  run(args, memory.mutable_data_ptr<float>());
  EXPECT_TRUE(results.rows.rows.equal(rows.rows)) << results.rows.rows << rows.rows;
  EXPECT_TRUE(results.rows.count.equal(rows.count));
  EXPECT_EQ(got.window.finished.sum().item<int64_t>(), 0);
  const std::vector<at::Tensor*> a = got.changed(), b = expected.changed();
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_TRUE(a[i]->equal(*b[i])) << "tensor " << i << "\n" << *a[i] << "\n" << *b[i];
  got.apart = expected.apart;
}

template <class Shape>
void expect_cluster_like_cpu(WindowStepCase& got) {
  expect_like_cpu(got, [](const WindowStepArgs& args, float* memory) {
    emulated::launch(
        {static_cast<unsigned>(args.images * args.filter.logits.rows * Shape::kBlocks)}, {Shape::kThreads},
        sizeof(sampling::ClusterStorage<Shape>), [&] { window_step_cluster_kernel<Shape>(args, memory); },
        Shape::kBlocks);
  });
}

// Of an eighth of the real threads, so that many cases take seconds.
TEST(WindowStepEmulatedTest, ClustersRenewWindowsLikeTheCpu) {
  std::mt19937 rng(61);
  for (int trial = 0; trial < 42; ++trial) {
    const int64_t vocabulary = trial % 4 == 0 ? pick(rng, 1, 300) : 8 * pick(rng, 1, 256);
    WindowStepCase got = window_step_case(rng, trial, trial % 5 == 0 ? 2 : 1, vocabulary, pick(rng, 2, 6));
    for (int cycle = 0; cycle < window_cycles(trial); ++cycle) {
      SCOPED_TRACE("trial " + std::to_string(trial) + " cycle " + std::to_string(cycle));
      emulated::shuffle() = static_cast<unsigned>(trial + cycle);
      got.score(rng, trial, 0.3F);
      if (trial % 3 == 0) {
        expect_cluster_like_cpu<sampling::RowShape<1, 128, 16>>(got);
      } else {
        expect_cluster_like_cpu<sampling::RowShape<4, 64, 8>>(got);
      }
    }
  }
  emulated::shuffle() = 0;
}

TEST(WindowStepEmulatedTest, BlocksRenewWindowsLikeTheCpu) {
  std::mt19937 rng(62);
  for (int trial = 0; trial < 8; ++trial) {
    WindowStepCase got = window_step_case(rng, trial, 2, pick(rng, 1, 1500), 3);
    for (int cycle = 0; cycle < window_cycles(trial) / 2 + 1; ++cycle) {
      SCOPED_TRACE("trial " + std::to_string(trial) + " cycle " + std::to_string(cycle));
      emulated::shuffle() = static_cast<unsigned>(trial + cycle);
      got.score(rng, trial, 0.3F);
      expect_like_cpu(got, [&](const WindowStepArgs& args, float* memory) {
        emulated::launch({6}, {kRowThreads}, 0, [&] { window_step_kernel(args, memory); });
      });
      if (window_cycles(trial) == 1) break;
    }
  }
  emulated::shuffle() = 0;
}

// The shapes that a device runs, full: bf16, guided, top-k as models use it.
TEST(WindowStepEmulatedTest, WholeRows) {
  std::mt19937 rng(63);
  WindowStepCase small = window_step_case(rng, 1, 1, 16384, 3);
  small.step.filtering.top_k.fill_(1000);
  small.step.keep = true;
  for (int cycle = 0; cycle < 2; ++cycle) {
    small.score(rng, 1, 0.3F);
    expect_cluster_like_cpu<sampling::RowShape<8, 256, 8>>(small);
  }
  small.score(rng, 1, 0.3F);
  expect_cluster_like_cpu<sampling::RowShape<1, 512, 32>>(small);
  WindowStepCase large = window_step_case(rng, 2, 1, 65536, 2);
  large.step.filtering.top_k.fill_(2000);
  for (int cycle = 0; cycle < 2; ++cycle) {
    large.score(rng, 2, 0.3F);
    expect_cluster_like_cpu<sampling::RowShape<8, 1024, 8>>(large);
  }
}

}  // namespace
}  // namespace lamplighter::test
