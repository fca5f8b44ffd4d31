#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "kernels/attend/args.h"
#include "kernels/common/cuda_stream.h"

namespace lamplighter {
namespace {

constexpr int64_t kLargestHead = 256;

at::Tensor attend(const at::Tensor& qkv, at::Tensor& cache, int64_t layer, const at::Tensor& positions,
                  const at::Tensor& lengths, const at::Tensor& tree_mask, const at::Tensor& rotary,
                  int64_t heads, int64_t kv_heads, double scale) {
  AttendArgs args =
      attend_args(qkv, cache, layer, positions, lengths, tree_mask, rotary, heads, kv_heads, scale);
  TORCH_CHECK(args.head_dim <= kLargestHead, "attend: head_dim of the cache is ", args.head_dim,
              ", expected at most ", kLargestHead, " on CUDA");
  const CudaLauncher launcher(qkv);
  at::Tensor out = at::empty({args.sequences, args.rows, heads * args.head_dim}, qkv.options());
  args.out = out.mutable_data_ptr();
  at::Tensor workspace =
      at::empty({static_cast<int64_t>(attend_cuda_workspace_bytes(args))}, qkv.options().dtype(at::kByte));
  launcher.launch([&](void* stream) { attend_cuda(args, workspace.mutable_data_ptr(), stream); });
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CUDA, m) {
  m.impl("attend", &attend);
}

}  // namespace lamplighter
