#include "kernels/sampling/cluster_launch.h"
#include "kernels/step/ar_step_cuda.h"

namespace lamplighter {
namespace {

size_t row_bytes(const ArStepArgs& args) {
  return 2 * static_cast<size_t>(args.filter.logits.vocabulary) * sizeof(float);
}

// use(shape, kernel) where a row fits a cluster or block that lists it.
template <class Use>
bool with_shape(const ArStepArgs& args, Use use) {
  return with_row_shape(
      args.filter.logits.vocabulary, [](auto shape) { return &ar_step_cluster_kernel<decltype(shape)>; },
      use);
}

}  // namespace

size_t ar_step_cuda_bytes(const ArStepArgs& args) {
  const auto images = static_cast<size_t>(args.images);
  if (with_shape(args, [](auto, auto*) {})) return images * row_bytes(args);
  return shared_bytes_for(ar_step_kernel, row_bytes(args)) > 0 ? 0 : images * row_bytes(args);
}

void ar_step_cuda(const ArStepArgs& args, float* scratch, void* stream) {
  if (args.images == 0) return;
  const auto in_clusters = [&](auto shape, auto* kernel) {
    launch_rows(shape, args.images, kernel, cuda_stream(stream), args, scratch);
  };
  if (with_shape(args, in_clusters)) return;
  const size_t shared = scratch == nullptr ? row_bytes(args) : 0;
  ar_step_kernel<<<grid_size(args.images), kRowThreads, shared, cuda_stream(stream)>>>(args, scratch);
}

}  // namespace lamplighter
