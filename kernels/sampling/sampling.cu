#include "base/philox.h"
#include "kernels/sampling/cluster_launch.h"
#include "kernels/sampling/sampling_cuda.h"

namespace lamplighter {
namespace {

constexpr int kThreads = 256;

__global__ void uniforms_kernel(UniformsArgs args) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= args.images * args.count) return;
  const int64_t image = i / args.count;
  args.out[i] =
      philox_uniform(static_cast<uint64_t>(args.seeds[image]), static_cast<uint32_t>(args.steps[image]),
                     static_cast<uint32_t>(args.purpose), static_cast<uint32_t>(i % args.count));
}

size_t row_bytes(const DistributionRows& rows, size_t count) {
  return count * static_cast<size_t>(rows.vocabulary) * sizeof(float);
}

// use(shape, kernel) where a row fits a cluster.
template <class Use>
bool with_clusters(const DistributionRows& rows, Use use) {
  return with_row_shape(
      rows.vocabulary, [](auto shape) { return &guide_and_filter_cluster_kernel<decltype(shape)>; }, use);
}

}  // namespace

void uniforms_cuda(const UniformsArgs& args, void* stream) {
  const int64_t blocks = (args.images * args.count + kThreads - 1) / kThreads;
  if (blocks > 0) uniforms_kernel<<<grid_size(blocks), kThreads, 0, cuda_stream(stream)>>>(args);
}

size_t guide_and_filter_cuda_bytes(const DistributionRows& rows) {
  const size_t bytes = row_bytes(rows, 2);
  if (with_clusters(rows, [](auto, auto*) {})) return bytes;  // where a cluster does not serve
  return shared_bytes_for(guide_and_filter_kernel, bytes) > 0 ? 0 : bytes;
}

void guide_and_filter_cuda(const GuideAndFilterArgs& args, float* scratch, void* stream) {
  const int64_t rows = args.images * args.logits.rows;
  if (rows == 0) return;
  const auto in_clusters = [&](auto shape, auto* kernel) {
    launch_rows(shape, rows, kernel, cuda_stream(stream), args, scratch);
  };
  if (with_clusters(args.logits, in_clusters)) return;
  const size_t shared = scratch == nullptr ? row_bytes(args.logits, 2) : 0;
  guide_and_filter_kernel<<<grid_size(rows), kRowThreads, shared, cuda_stream(stream)>>>(args, scratch);
}

void probabilities_cuda(const ProbabilitiesArgs& args, void* stream) {
  const int64_t rows = args.images * args.rows.rows;
  if (rows > 0) probabilities_kernel<<<grid_size(rows), kRowThreads, 0, cuda_stream(stream)>>>(args);
}

size_t sample_cuda_bytes(const DistributionRows& rows) {
  const size_t bytes = row_bytes(rows, 1);
  return rows.statistics == nullptr || shared_bytes_for(sample_kernel, bytes) > 0 ? 0 : bytes;
}

void sample_cuda(const SampleArgs& args, float* scratch, void* stream) {
  const int64_t rows = args.images * args.rows.rows;
  if (rows == 0) return;
  const bool in_shared = scratch == nullptr && args.rows.statistics != nullptr;
  const size_t shared = in_shared ? row_bytes(args.rows, 1) : 0;
  sample_kernel<<<grid_size(rows), kRowThreads, shared, cuda_stream(stream)>>>(args, scratch);
}

}  // namespace lamplighter
