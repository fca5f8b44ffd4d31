#pragma once

#include "kernels/common/cuda/rows.h"
#include "kernels/sampling/cluster_filter.h"
#include "kernels/step/ar_step_body.h"

// The kernels of ar_step.
namespace lamplighter {
namespace {

// The token of an image, left in block 0 of its cluster. False where lists do not serve.
template <class Shape>
__device__ bool sample_in_cluster(sampling::ClusterRow<Shape>& row, const ArStepArgs& args, int64_t image) {
  using sampling::ClusterFilter;
  const ClusterFilter outcome = sampling::filter_in_cluster(row, args.filter, image).outcome;
  if (outcome != ClusterFilter::listed) return outcome == ClusterFilter::no_distribution;
  if (args.temperature[image] > 0.0F) {
    row.sample(step::uniform_of(args, image));
  } else {
    row.take_best();
  }
  return true;
}

// A cluster for each image. memory: two rows for each image.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1) ar_step_cluster_kernel(ArStepArgs args, float* memory) {
  using Row = sampling::ClusterRow<Shape>;
  Row row(*reinterpret_cast<typename Row::Storage*>(shared_memory()), args.filter.logits.vocabulary);
  let_next_kernel_start();
  wait_for_earlier_kernels();
  const int64_t image = blockIdx.x / Shape::kBlocks;
  const bool sampled = sample_in_cluster(row, args, image);
  row.sync();  // from here on no block reads the memory of another one
  if (row.rank() != 0) return;
  const int64_t token = sampled ? row.token()
                                : step::next_token(row.executor(), args, image,
                                                   memory + 2 * image * args.filter.logits.vocabulary);
  step::commit_next(args, image, token, threadIdx.x, Shape::kThreads, [] { __syncthreads(); });
}

// A block for each image, where a row fits no cluster. memory: null where shared memory holds two rows.
__global__ void __launch_bounds__(kRowThreads) ar_step_kernel(ArStepArgs args, float* memory) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  const int64_t image = blockIdx.x;
  const int64_t token =
      step::next_token(executor, args, image, block_memory(memory, 2 * args.filter.logits.vocabulary));
  step::commit_next(args, image, token, threadIdx.x, kRowThreads, [] { __syncthreads(); });
}

}  // namespace
}  // namespace lamplighter
