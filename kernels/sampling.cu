#include "base/philox.h"
#include "kernels/cuda_executor.h"
#include "kernels/cuda_launch.h"
#include "kernels/sampling_body.h"

namespace lamplighter {
namespace {

constexpr int kThreads = 512;

__global__ void uniforms_kernel(UniformsArgs args) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= args.images * args.count) return;
  const int64_t image = i / args.count;
  args.out[i] =
      philox_uniform(static_cast<uint64_t>(args.seeds[image]), static_cast<uint32_t>(args.steps[image]),
                     static_cast<uint32_t>(args.purpose), static_cast<uint32_t>(i % args.count));
}

__global__ void __launch_bounds__(kThreads) guide_and_filter_kernel(GuideAndFilterArgs args, float* scratch) {
  __shared__ BlockStorage storage;
  BlockExecutor<kThreads> executor(&storage);
  const int64_t row = blockIdx.x;
  sampling::guide_and_filter_row(executor, args, row, scratch + row * 2 * args.logits.vocabulary);
}

__global__ void __launch_bounds__(kThreads) probabilities_kernel(ProbabilitiesArgs args) {
  __shared__ BlockStorage storage;
  BlockExecutor<kThreads> executor(&storage);
  sampling::write_probabilities_row(executor, args.rows, blockIdx.x, args.out);
}

__global__ void __launch_bounds__(kThreads) draw_kernel(DrawArgs args, float* scratch) {
  __shared__ BlockStorage storage;
  BlockExecutor<kThreads> executor(&storage);
  const int64_t row = blockIdx.x;
  sampling::draw_row(executor, args, row, scratch + row * args.rows.vocabulary);
}

}  // namespace

void uniforms_cuda(const UniformsArgs& args, void* stream) {
  const int64_t blocks = (args.images * args.count + kThreads - 1) / kThreads;
  if (blocks > 0) uniforms_kernel<<<grid_size(blocks), kThreads, 0, cuda_stream(stream)>>>(args);
}

void guide_and_filter_cuda(const GuideAndFilterArgs& args, float* scratch, void* stream) {
  const int64_t rows = args.images * args.logits.rows;
  if (rows == 0) return;
  guide_and_filter_kernel<<<grid_size(rows), kThreads, 0, cuda_stream(stream)>>>(args, scratch);
}

void probabilities_cuda(const ProbabilitiesArgs& args, void* stream) {
  const int64_t rows = args.images * args.rows.rows;
  if (rows > 0) probabilities_kernel<<<grid_size(rows), kThreads, 0, cuda_stream(stream)>>>(args);
}

void draw_cuda(const DrawArgs& args, float* scratch, void* stream) {
  const int64_t rows = args.images * args.rows.rows;
  if (rows > 0) draw_kernel<<<grid_size(rows), kThreads, 0, cuda_stream(stream)>>>(args, scratch);
}

}  // namespace lamplighter
