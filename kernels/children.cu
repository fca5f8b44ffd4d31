#include "kernels/children_body.h"
#include "kernels/cuda_executor.h"
#include "kernels/cuda_launch.h"

namespace lamplighter {
namespace {

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads)
    draw_children_kernel(DrawChildrenArgs args, char* scratch, int64_t scratch_bytes) {
  __shared__ BlockStorage storage;
  BlockExecutor<kThreads> executor(&storage);
  const int64_t row = blockIdx.x;
  children::draw_children_row(executor, args, row, scratch + row * scratch_bytes);
}

}  // namespace

void draw_children_cuda(const DrawChildrenArgs& args, void* scratch, void* stream) {
  const int64_t rows = args.images * args.rows.rows;
  if (rows == 0) return;
  draw_children_kernel<<<grid_size(rows), kThreads, 0, cuda_stream(stream)>>>(
      args, static_cast<char*>(scratch),
      static_cast<int64_t>(draw_children_scratch_bytes(args.rows.vocabulary)));
}

}  // namespace lamplighter
