#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "tests/kernels/continuous/denoise_problem.h"

#include "tests/kernels/common/emulated_device.h"

#include "kernels/continuous/denoise_cuda.h"
#include "kernels/continuous/denoise_walk.h"

// A chain whose kernels between the products run on an emulated device, against the CPU's operator.
namespace lamplighter::test {
namespace {

struct EmulatedDevice {
  static at::Tensor numbers(const float* from, int64_t rows, int64_t width) {
    return at::from_blob(const_cast<float*>(from), {rows, width}, at::kFloat);
  }

  // Weights [out, in], as CUDA has them.
  void product(const DenoiseProduct& p, const float* x, int64_t rows, float* out) const {
    numbers(out, rows, p.out).copy_(at::linear(numbers(x, rows, p.in), numbers(p.weight, p.out, p.in)));
  }
  void silu(const DenoiseSiluArgs& args) const {
    over_numbers(args.steps * args.rows * args.width, [&] { denoise_silu_kernel(args); });
  }
  void advance(const DenoiseAdvanceArgs& args) const {
    emulated::launch({static_cast<unsigned>(args.rows)}, {kDenoiseThreads}, 0,
                     [&] { denoise_advance_kernel(args); });
  }
  void step(const DenoiseStepArgs& args) const {
    over_numbers(args.all.tokens * args.channels, [&] { denoise_step_kernel(args); });
  }

  template <class Kernel>
  static void over_numbers(int64_t numbers, Kernel kernel) {
    const int64_t blocks = (numbers + kDenoiseThreads - 1) / kDenoiseThreads;
    emulated::launch({static_cast<unsigned>(blocks)}, {kDenoiseThreads}, 0, kernel);
  }
};

Denoised emulated_chain(const DenoiseProblem& problem) {
  const std::vector<at::Tensor> packed = problem.packed();
  DenoiseHead head = denoise_head(problem.call(packed));
  head.condition.weight = problem.weights[0].const_data_ptr<float>();
  head.input.weight = problem.weights[1].const_data_ptr<float>();
  head.modulation.weight = problem.weights[2].const_data_ptr<float>();
  head.output.weight = problem.weights[3].const_data_ptr<float>();
  for (size_t b = 0; b < head.blocks.size(); ++b) {
    head.blocks[b].inner.weight = problem.weights[4 + 2 * b].const_data_ptr<float>();
    head.blocks[b].outer.weight = problem.weights[5 + 2 * b].const_data_ptr<float>();
  }
  DenoiseTokens tokens = denoise_tokens(problem.call(packed), head);
  Denoised result{at::empty_like(problem.start), at::empty_like(problem.start),
                  at::zeros_like(problem.start, at::kDouble)};
  tokens.mean = result.mean.mutable_data_ptr<float>();
  tokens.deviation = result.deviation.mutable_data_ptr<float>();
  tokens.sums = result.sums.mutable_data_ptr<double>();
  const DenoiseWalk walk(head, tokens.tokens, tokens.unconditional != nullptr);
  at::Tensor memory = at::full({walk.floats()}, std::nan(""), at::kFloat);
  walk.run(EmulatedDevice{}, tokens, memory.mutable_data_ptr<float>());
  return result;
}

TEST(DenoiseKernels, TheChainIsThatOfTheCpu) {
  std::mt19937 rng(47);
  for (int trial = 0; trial < 10; ++trial) {
    SCOPED_TRACE(trial);
    emulated::shuffle() = static_cast<unsigned>(trial);
    DenoiseShape shape{pick(rng, 1, 4), pick(rng, 1, 30), pick(rng, 1, 17), pick(rng, 2, 60),
                       pick(rng, 0, 3), pick(rng, 1, 5),  trial % 2 == 0};
    if (trial == 9) shape = {1, 8, 3, 600, 1, 2, true};  // rows wider than a block
    const DenoiseProblem problem(rng, shape);
    const Denoised got = emulated_chain(problem), cpu = problem.run();
    const Denoised exact = problem.reference(at::kDouble);
    EXPECT_TRUE(as_near(got.mean, exact.mean, cpu.mean));
    EXPECT_TRUE(as_near(got.deviation, exact.deviation, cpu.deviation));
    EXPECT_TRUE(as_near(got.sums, exact.sums, cpu.sums));
  }
  emulated::shuffle() = 0;
}

}  // namespace
}  // namespace lamplighter::test
