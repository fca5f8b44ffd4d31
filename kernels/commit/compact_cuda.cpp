#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "kernels/commit/compact_args.h"
#include "kernels/common/cuda_stream.h"

namespace lamplighter {
namespace {

void compact_cache(at::Tensor& cache, const at::Tensor& lengths, const at::Tensor& path,
                   const at::Tensor& count) {
  const CompactArgs args = compact_args(cache, lengths, path, count);
  const CudaLauncher launcher(cache);
  launcher.launch([&](void* stream) { compact_cuda(args, stream); });
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CUDA, m) {
  m.impl("compact_cache", &compact_cache);
}

}  // namespace lamplighter
