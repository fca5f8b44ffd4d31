#include <torch/library.h>

#include "kernels/commit/commit_operators.h"
#include "kernels/common/cuda_stream.h"

namespace lamplighter {
namespace {

class OnCuda {
 public:
  explicit OnCuda(const at::Tensor& tensor) : launcher_(tensor) {}

  void operator()(const TreeRowsArgs& args) const {
    launcher_.launch([&](void* stream) { tree_rows_cuda(args, stream); });
  }
  void operator()(const CommitArgs& args) const {
    launcher_.launch([&](void* stream) { commit_tokens_cuda(args, stream); });
  }

 private:
  CudaLauncher launcher_;
};

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CUDA, m) {
  m.impl("tree_rows", &CycleOperators<OnCuda>::tree_rows);
  m.impl("commit_tokens", &CycleOperators<OnCuda>::commit_tokens);
}

}  // namespace lamplighter
