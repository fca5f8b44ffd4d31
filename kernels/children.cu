#include "kernels/cuda_children.h"
#include "kernels/cuda_launch.h"

namespace lamplighter {

void draw_children_cuda(const DrawChildrenArgs& args, void* scratch, void* stream) {
  const int64_t rows = args.images * args.rows.rows;
  if (rows == 0) return;
  const size_t row = static_cast<size_t>(args.rows.vocabulary) * sizeof(float);
  const size_t shared = args.rows.statistics != nullptr ? shared_bytes_for(draw_children_kernel, row) : 0;
  draw_children_kernel<<<grid_size(rows), kRowThreads, shared, cuda_stream(stream)>>>(
      args, static_cast<char*>(scratch),
      static_cast<int64_t>(draw_children_scratch_bytes(args.rows.vocabulary)), shared > 0);
}

}  // namespace lamplighter
