#pragma once

#include "kernels/common/cuda/rows.h"
#include "kernels/sampling/cluster_filter.h"
#include "kernels/sampling/sampling_body.h"

// The kernels over rows of logits, a block or a cluster each.
namespace lamplighter {
namespace {

// rows: null where the rows of a block lie in shared memory.
__global__ void __launch_bounds__(kRowThreads) guide_and_filter_kernel(GuideAndFilterArgs args, float* rows) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  sampling::guide_and_filter_row(executor, args, blockIdx.x, block_memory(rows, 2 * args.logits.vocabulary));
}

// A cluster for each row. memory: two rows for each of them.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    guide_and_filter_cluster_kernel(GuideAndFilterArgs args, float* memory) {
  using Row = sampling::ClusterRow<Shape>;
  Row row(*reinterpret_cast<typename Row::Storage*>(shared_memory()), args.logits.vocabulary);
  let_next_kernel_start();
  wait_for_earlier_kernels();
  const int64_t number = blockIdx.x / Shape::kBlocks;
  const sampling::ClusterFiltered filtered = sampling::filter_in_cluster(row, args, number);
  row.sync();  // from here on no block reads the memory of another one
  if (row.rank() != 0) return;
  if (filtered.outcome == sampling::ClusterFilter::unfit) {
    sampling::guide_and_filter_row(row.executor(), args, number,
                                   memory + 2 * number * args.logits.vocabulary);
  } else if (threadIdx.x == 0) {
    args.out[number] = filtered.statistics;
  }
}

__global__ void __launch_bounds__(kRowThreads) probabilities_kernel(ProbabilitiesArgs args) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  sampling::write_probabilities_row(executor, args.rows, blockIdx.x, args.out);
}

__global__ void __launch_bounds__(kRowThreads) sample_kernel(SampleArgs args, float* rows) {
  __shared__ BlockStorage storage;
  RowExecutor executor(&storage);
  sampling::sample_row(executor, args, blockIdx.x, block_memory(rows, args.rows.vocabulary));
}

}  // namespace
}  // namespace lamplighter
