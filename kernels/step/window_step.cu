#include "kernels/sampling/cluster_launch.h"
#include "kernels/step/window_step_cuda.h"

namespace lamplighter {
namespace {

int64_t rows_of(const WindowStepArgs& args) {
  return args.images * args.filter.logits.rows;
}

}  // namespace

size_t window_step_cuda_bytes(const WindowStepArgs& args) {
  return static_cast<size_t>(rows_of(args)) * window_step_floats(args.filter.logits.vocabulary) *
         sizeof(float);
}

void window_step_cuda(const WindowStepArgs& args, float* scratch, void* stream) {
  const int64_t rows = rows_of(args);
  if (rows == 0) return;
  const auto in_clusters = [&](auto shape, auto* kernel) {
    launch_rows(shape, rows, kernel, cuda_stream(stream), args, scratch);
  };
  const auto kernel_of = [](auto shape) { return &window_step_cluster_kernel<decltype(shape)>; };
  if (with_row_shape(args.filter.logits.vocabulary, kernel_of, in_clusters)) return;
  window_step_kernel<<<grid_size(rows), kRowThreads, 0, cuda_stream(stream)>>>(args, scratch);
}

}  // namespace lamplighter
