#pragma once

#include "kernels/common/cuda/rows.h"
#include "kernels/verify/verify_body.h"

// The kernels of verify_tree.
namespace lamplighter {
namespace {

using verification::NoBugs;

// Blocks that verify the nodes of an image; the most that trees have inside is about as many.
constexpr int kVerifies = 32;

// residuals: two rows for each block. reads: rows of each block, null where shared memory holds them.
__global__ void __launch_bounds__(kRowThreads)
    verify_nodes_kernel(VerifyArgs args, float* residuals, float* reads, int64_t read_floats, int* verdicts) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  const int64_t image = blockIdx.x / kVerifies;
  float* own = residuals + 2 * blockIdx.x * args.vocabulary;
  const verification::Cycle cycle(args, image, block_memory(reads, read_floats));
  const bool verifies = verification::verifies_alone(args, image);
  for (int node = static_cast<int>(blockIdx.x) % kVerifies; node < cycle.nodes; node += kVerifies) {
    const int accepted =
        verifies ? verification::verify_alone<NoBugs>(executor, cycle, node, {own, own + args.vocabulary})
                 : 0;
    executor.for_each(1, [=](int) { verdicts[image * cycle.nodes + node] = accepted; });
  }
}

template <verification::Rules kRules>
__global__ void __launch_bounds__(kRowThreads)
    verify_tree_kernel(VerifyArgs args, float* residuals, float* reads, int64_t read_floats) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  const int64_t image = blockIdx.x;
  verification::verify_image<NoBugs, kRules>(executor, args, image,
                                             residuals + image * args.levels * args.vocabulary,
                                             block_memory(reads, read_floats));
}

}  // namespace
}  // namespace lamplighter
