#include "kernels/sampling/cluster_launch.h"
#include "kernels/trees/children_cuda.h"

namespace lamplighter {
namespace {

// use(shape, kernel) where a row fits a cluster.
template <class Use>
bool with_clusters(const DistributionRows& rows, Use use) {
  return with_row_shape(
      rows.vocabulary, [](auto shape) { return &draft_children_cluster_kernel<decltype(shape)>; }, use);
}

}  // namespace

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
  if (with_clusters(rows, [](auto, auto*) {})) return bytes;  // where a cluster does not serve
  return shared_bytes_for(draft_children_kernel, bytes) > 0 ? 0 : bytes;
}

void draft_children_cuda(const GuideAndFilterArgs& filter, const SampleChildrenArgs& sample, void* scratch,
                         float* rows, void* stream) {
  const int64_t count = sample.images * sample.rows.rows;
  if (count == 0) return;
  auto* lists = static_cast<char*>(scratch);
  const auto bytes = static_cast<int64_t>(sample_children_scratch_bytes(sample.rows.vocabulary));
  const auto in_clusters = [&](auto shape, auto* kernel) {
    launch_rows(shape, count, kernel, cuda_stream(stream), filter, sample, lists, bytes, rows);
  };
  if (with_clusters(sample.rows, in_clusters)) return;
  const size_t shared = rows == nullptr ? 2 * static_cast<size_t>(sample.rows.vocabulary) * sizeof(float) : 0;
  draft_children_kernel<<<grid_size(count), kRowThreads, shared, cuda_stream(stream)>>>(filter, sample, lists,
                                                                                        bytes, rows);
}

}  // namespace lamplighter
