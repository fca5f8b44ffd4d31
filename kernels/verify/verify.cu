#include "kernels/common/cuda/launch.h"
#include "kernels/verify/verify_cuda.h"

namespace lamplighter {
namespace {

using verification::Rules;

auto* verify_tree_kernel_of(const VerifyArgs& args) {
  return args.walk == Walk::paths ? verify_tree_kernel<Rules::paths> : verify_tree_kernel<Rules::walks>;
}

// Where the kernels keep what they compute: both use the same memory, one after the other.
struct Layout {
  int64_t verifies;  // blocks
  size_t verdicts;   // bytes
  size_t residuals;  // bytes
  size_t reads;      // bytes; 0 where shared memory holds them
  size_t shared;     // bytes of a block
};

Layout layout_of(const VerifyArgs& args) {
  Layout layout{};
  layout.verifies = args.nodes > 1 && args.walk != Walk::paths ? args.images * kVerifies : 0;
  const size_t row = static_cast<size_t>(args.vocabulary) * sizeof(float);
  const size_t reads = verify_read_floats(args) * sizeof(float);
  layout.verdicts = (static_cast<size_t>(args.images * args.nodes) * sizeof(int) + 127) / 128 * 128;
  const auto images = static_cast<size_t>(args.images);
  const size_t verified = static_cast<size_t>(layout.verifies) * 2 * row;
  const size_t walked = images * verify_residual_floats(args) * sizeof(float);
  layout.residuals = verified > walked ? verified : walked;
  const bool in_shared = reads > 0 && shared_bytes_for(verify_nodes_kernel, reads) > 0 &&
                         shared_bytes_for(verify_tree_kernel_of(args), reads) > 0;
  layout.shared = in_shared ? reads : 0;
  const auto blocks = static_cast<size_t>(layout.verifies > 0 ? layout.verifies : args.images);
  layout.reads = in_shared ? 0 : reads * blocks;
  return layout;
}

}  // namespace

size_t verify_cuda_bytes(const VerifyArgs& args) {
  const Layout layout = layout_of(args);
  return layout.verdicts + layout.residuals + layout.reads;
}

void verify_cuda(const VerifyArgs& args, void* scratch, void* stream) {
  if (args.images == 0) return;
  const Layout layout = layout_of(args);
  int* verdicts = static_cast<int*>(scratch);
  auto* residuals = reinterpret_cast<float*>(static_cast<char*>(scratch) + layout.verdicts);
  float* reads = layout.reads > 0 ? residuals + layout.residuals / sizeof(float) : nullptr;
  const auto floats = static_cast<int64_t>(verify_read_floats(args));
  VerifyArgs verified = args;
  if (layout.verifies > 0) {
    verify_nodes_kernel<<<grid_size(layout.verifies), kRowThreads, layout.shared, cuda_stream(stream)>>>(
        args, residuals, reads, floats, verdicts);
    verified.verdicts = verdicts;
  }
  verify_tree_kernel_of(args)<<<grid_size(args.images), kRowThreads, layout.shared, cuda_stream(stream)>>>(
      verified, residuals, reads, floats);
}

}  // namespace lamplighter
