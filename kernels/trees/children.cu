#include "kernels/common/cuda/launch.h"
#include "kernels/trees/children_cuda.h"

namespace lamplighter {

void sample_children_cuda(const SampleChildrenArgs& args, void* scratch, void* stream) {
  const int64_t rows = args.images * args.rows.rows;
  if (rows == 0) return;
  const size_t row = static_cast<size_t>(args.rows.vocabulary) * sizeof(float);
  const size_t shared = args.rows.statistics != nullptr ? shared_bytes_for(sample_children_kernel, row) : 0;
  sample_children_kernel<<<grid_size(rows), kRowThreads, shared, cuda_stream(stream)>>>(
      args, static_cast<char*>(scratch),
      static_cast<int64_t>(sample_children_scratch_bytes(args.rows.vocabulary)), shared > 0);
}

size_t draft_children_cuda_bytes(const DistributionRows& rows) {
  const size_t bytes = 2 * static_cast<size_t>(rows.vocabulary) * sizeof(float);
  return shared_bytes_for(draft_children_kernel, bytes) > 0 ? 0 : bytes;
}

void draft_children_cuda(const GuideAndFilterArgs& filter, const SampleChildrenArgs& sample, void* scratch,
                         float* rows, void* stream) {
  const int64_t blocks = sample.images * sample.rows.rows;
  if (blocks == 0) return;
  const size_t shared = rows == nullptr ? 2 * static_cast<size_t>(sample.rows.vocabulary) * sizeof(float) : 0;
  draft_children_kernel<<<grid_size(blocks), kRowThreads, shared, cuda_stream(stream)>>>(
      filter, sample, static_cast<char*>(scratch),
      static_cast<int64_t>(sample_children_scratch_bytes(sample.rows.vocabulary)), rows);
}

}  // namespace lamplighter
