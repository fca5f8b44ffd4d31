#pragma once

#include "kernels/common/cuda/rows.h"
#include "kernels/sampling/cluster_row.h"
#include "kernels/step/ar_step_body.h"

// The kernels of ar_step.
namespace lamplighter {
namespace {

// The token of an image, left in block 0 of its cluster. False where the list form does not serve: top-p, and
// rows with many equal logits at the end of top-k.
template <class Shape>
__device__ bool sample_in_cluster(sampling::ClusterRow<Shape>& row, const ArStepArgs& args, int64_t image) {
  const GuideAndFilterArgs& filter = args.filter;
  const int64_t top_k = filter.top_k[image];
  const sampling::FilterSteps steps =
      sampling::filter_steps(filter.temperature[image], filter.top_p[image], filter.order);
  sampling::with_guided_logits(filter.logits, image, filter.guidance[image],
                               [&](auto logits) { row.load(logits); });
  const float largest = row.find_largest();
  if (!(largest < sampling::kInfinity && largest > -sampling::kInfinity)) return true;  // no token
  if (steps.top_p) return false;
  float floor = steps.greedy ? largest : -sampling::kInfinity;
  if (!steps.greedy && top_k > 0 && top_k < filter.logits.vocabulary) {
    const sampling::FoundKth kth = row.kth(top_k);
    if (!kth.found) return false;
    floor = kth.value;
  }
  row.keep(floor, steps.scale);
  if (args.temperature[image] > 0.0F) {
    row.sample(step::uniform_of(args, image));
  } else {
    row.take_best();
  }
  return true;
}

// A cluster for each image. memory: two rows for each image.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads) ar_step_cluster_kernel(ArStepArgs args, float* memory) {
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
