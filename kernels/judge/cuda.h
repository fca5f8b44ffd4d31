#pragma once

#include "kernels/common/cuda/rows.h"
#include "kernels/judge/body.h"

// The kernels of judge_tree.
namespace lamplighter {
namespace {

using judging::NoBugs;

// Blocks that judge the nodes of an image; the most that trees have inside is about as many.
constexpr int kJudges = 32;

// residuals: two rows for each block. reads: rows of each block, null where shared memory holds them.
__global__ void __launch_bounds__(kRowThreads)
    judge_nodes_kernel(JudgeArgs args, float* residuals, float* reads, int64_t read_floats, int* verdicts) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  const int64_t image = blockIdx.x / kJudges;
  float* own = residuals + 2 * blockIdx.x * args.vocabulary;
  const judging::Cycle cycle(args, image, block_memory(reads, read_floats));
  const bool judges = judging::judges_alone(args, image);
  for (int node = static_cast<int>(blockIdx.x) % kJudges; node < cycle.nodes; node += kJudges) {
    const int accepted =
        judges ? judging::judge_alone<NoBugs>(executor, cycle, node, {own, own + args.vocabulary}) : 0;
    executor.for_each(1, [=](int) { verdicts[image * cycle.nodes + node] = accepted; });
  }
}

template <judging::Rules kRules>
__global__ void __launch_bounds__(kRowThreads)
    judge_tree_kernel(JudgeArgs args, float* residuals, float* reads, int64_t read_floats) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  const int64_t image = blockIdx.x;
  judging::judge_image<NoBugs, kRules>(executor, args, image,
                                       residuals + image * args.levels * args.vocabulary,
                                       block_memory(reads, read_floats));
}

}  // namespace
}  // namespace lamplighter
