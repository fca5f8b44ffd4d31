#pragma once

#include "kernels/common/cuda/launch.h"
#include "kernels/sampling/cluster_row.h"

// Host-side helpers of the .cu files whose kernels have rows in clusters.
namespace lamplighter {

// Up to 16,384 tokens, up to 65,536, and up to 16,384 on devices without clusters.
using SmallRow = sampling::RowShape<8, 256, 8>;
using LargeRow = sampling::RowShape<8, 1024, 8>;
using BlockRow = sampling::RowShape<1, 512, 32>;

template <class Shape, class Kernel>
bool holds_row(int64_t vocabulary, Kernel* kernel) {
  constexpr size_t kBytes = sizeof(sampling::ClusterStorage<Shape>);
  if (vocabulary > Shape::kMostTokens || shared_bytes_for(kernel, kBytes) == 0) return false;
  return Shape::kBlocks == 1 || runs_in_clusters(kernel, Shape::kBlocks, Shape::kThreads, kBytes);
}

// use(shape, its kernel) with the first shape that holds a row on the current device; false for none. All
// operators ask here, so that a row has the same bits in each of them.
template <class KernelOf, class Use>
bool with_row_shape(int64_t vocabulary, KernelOf kernel_of, Use use) {
  const auto uses = [&](auto shape) {
    auto* kernel = kernel_of(shape);
    if (!holds_row<decltype(shape)>(vocabulary, kernel)) return false;
    use(shape, kernel);
    return true;
  };
  return uses(SmallRow{}) || uses(LargeRow{}) || uses(BlockRow{});
}

// A cluster for each row.
template <class Shape, class... Parameters>
void launch_rows(Shape, int64_t rows, void (*kernel)(Parameters...), cudaStream_t stream,
                 Parameters... arguments) {
  launch_clusters(Shape::kBlocks, kernel, dim3(grid_size(rows * Shape::kBlocks)), Shape::kThreads,
                  sizeof(sampling::ClusterStorage<Shape>), stream, arguments...);
}

}  // namespace lamplighter
