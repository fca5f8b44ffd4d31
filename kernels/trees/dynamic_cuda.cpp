#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>
#include <tuple>

#include "kernels/common/cuda_stream.h"
#include "kernels/trees/dynamic_args.h"
#include "kernels/trees/dynamic_results.h"

namespace lamplighter {
namespace {

at::Tensor scratch_on(const at::Tensor& tensor, int64_t blocks, size_t bytes) {
  return at::empty({blocks, static_cast<int64_t>(bytes)}, tensor.options().dtype(at::kByte));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> expand_dynamic(const at::Tensor& values,
                                                              const at::Tensor& scores, int64_t k,
                                                              const std::optional<at::Tensor>& statistics) {
  ExpandArgs args = expand_args(values, scores, k, or_undefined(statistics));
  const CudaLauncher launcher(values);
  const ExpandResults results(args, scores);
  const at::Tensor scratch = scratch_on(scores, args.images * args.rows.rows,
                                        expand_scratch_bytes(args.rows.vocabulary, args.rows.rows * args.k));
  launcher.launch([&](void* stream) { expand_cuda(args, scratch.mutable_data_ptr(), stream); });
  return results.tuple();
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> rerank_dynamic(
    const at::Tensor& tokens, const at::Tensor& scores, const at::Tensor& frontiers, int64_t nodes) {
  RerankArgs args = rerank_args(tokens, scores, frontiers, nodes);
  const CudaLauncher launcher(tokens);
  const RerankResults results(args, tokens);
  const at::Tensor scratch = scratch_on(tokens, args.images, rerank_scratch_bytes(args.pool));
  launcher.launch([&](void* stream) { rerank_cuda(args, scratch.mutable_data_ptr(), stream); });
  return results.tuple();
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CUDA, m) {
  m.impl("expand_dynamic", &expand_dynamic);
  m.impl("rerank_dynamic", &rerank_dynamic);
}

}  // namespace lamplighter
