#include "kernels/common/cuda/launch.h"
#include "kernels/step/ar_step_cuda.h"

namespace lamplighter {
namespace {

// Rows as they are spread over blocks. A device without clusters takes the last one.
using SmallRow = sampling::RowShape<8, 256, 8>;
using LargeRow = sampling::RowShape<8, 1024, 8>;
using BlockRow = sampling::RowShape<1, 512, 32>;

size_t row_bytes(const ArStepArgs& args) {
  return 2 * static_cast<size_t>(args.filter.logits.vocabulary) * sizeof(float);
}

template <class Shape>
bool fits(const ArStepArgs& args) {
  auto* kernel = ar_step_cluster_kernel<Shape>;
  constexpr size_t kBytes = sizeof(sampling::ClusterStorage<Shape>);
  if (args.filter.logits.vocabulary > Shape::kMostTokens || shared_bytes_for(kernel, kBytes) == 0)
    return false;
  return Shape::kBlocks == 1 || runs_in_clusters(kernel, Shape::kBlocks, Shape::kThreads, kBytes);
}

template <class Shape>
void launch(const ArStepArgs& args, float* scratch, cudaStream_t stream) {
  launch_clusters(Shape::kBlocks, ar_step_cluster_kernel<Shape>,
                  dim3(grid_size(args.images * Shape::kBlocks)), Shape::kThreads,
                  sizeof(sampling::ClusterStorage<Shape>), stream, args, scratch);
}

// use(shape) with the first shape that holds a row on the current device; false for none.
template <class Use>
bool with_shape(const ArStepArgs& args, Use use) {
  if (fits<SmallRow>(args)) return use(SmallRow{}), true;
  if (fits<LargeRow>(args)) return use(LargeRow{}), true;
  if (fits<BlockRow>(args)) return use(BlockRow{}), true;
  return false;
}

}  // namespace

size_t ar_step_cuda_bytes(const ArStepArgs& args) {
  const auto images = static_cast<size_t>(args.images);
  if (with_shape(args, [](auto) {})) return images * row_bytes(args);
  return shared_bytes_for(ar_step_kernel, row_bytes(args)) > 0 ? 0 : images * row_bytes(args);
}

void ar_step_cuda(const ArStepArgs& args, float* scratch, void* stream) {
  if (args.images == 0) return;
  const auto in_clusters = [&](auto shape) { launch<decltype(shape)>(args, scratch, cuda_stream(stream)); };
  if (with_shape(args, in_clusters)) return;
  const size_t shared = scratch == nullptr ? row_bytes(args) : 0;
  ar_step_kernel<<<grid_size(args.images), kRowThreads, shared, cuda_stream(stream)>>>(args, scratch);
}

}  // namespace lamplighter
