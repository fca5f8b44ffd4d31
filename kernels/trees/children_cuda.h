#pragma once

#include "kernels/common/cuda/rows.h"
#include "kernels/sampling/cluster_filter.h"
#include "kernels/trees/children_cluster.h"

// The kernels of sample_children and draft_children, a block or a cluster for each row.
namespace lamplighter {
namespace {

// in_shared: whether a row of probabilities lies in shared memory.
__global__ void __launch_bounds__(kRowThreads)
    sample_children_kernel(SampleChildrenArgs args, char* scratch, int64_t scratch_bytes, bool in_shared) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  char* lists = scratch + blockIdx.x * scratch_bytes;
  float* room = reinterpret_cast<float*>(lists + children::kScratchPerToken * args.rows.vocabulary);
  children::sample_children_row(executor, args, blockIdx.x, lists,
                                in_shared ? reinterpret_cast<float*>(shared_memory()) : room);
}

// rows: null where the rows of a block lie in shared memory: guided logits, then probabilities.
__global__ void __launch_bounds__(kRowThreads)
    draft_children_kernel(GuideAndFilterArgs filter, SampleChildrenArgs sample, char* scratch,
                          int64_t scratch_bytes, float* rows) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  float* memory = block_memory(rows, 2 * filter.logits.vocabulary);
  sampling::guide_and_filter_row(executor, filter, blockIdx.x, memory);
  children::sample_children_row(executor, sample, blockIdx.x, scratch + blockIdx.x * scratch_bytes, memory);
}

// A cluster for each row. rows: two rows for each of them.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    draft_children_cluster_kernel(GuideAndFilterArgs filter, SampleChildrenArgs sample, char* scratch,
                                  int64_t scratch_bytes, float* rows) {
  using Row = children::ClusterChildren<Shape>;
  Row row(*reinterpret_cast<typename Row::Storage*>(shared_memory()), filter.logits.vocabulary);
  let_next_kernel_start();
  wait_for_earlier_kernels();
  const int64_t number = blockIdx.x / Shape::kBlocks;
  char* lists = scratch + number * scratch_bytes;
  float* memory = rows + 2 * number * filter.logits.vocabulary;
  const sampling::ClusterFiltered filtered = sampling::filter_in_cluster(row, filter, number);
  const bool listed = filtered.outcome == sampling::ClusterFilter::listed && Row::fits(sample);
  if (listed) row.sample(sample, number, lists);
  row.sync();  // from here on no block reads the memory of another one
  if (row.rank() != 0) return;
  if (filtered.outcome == sampling::ClusterFilter::unfit) {
    sampling::guide_and_filter_row(row.executor(), filter, number, memory);
  } else {
    if (threadIdx.x == 0) filter.out[number] = filtered.statistics;
    __syncthreads();
  }
  if (!listed) children::sample_children_row(row.executor(), sample, number, lists, memory);
}

}  // namespace
}  // namespace lamplighter
