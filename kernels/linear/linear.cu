#include "kernels/common/cuda/launch.h"
#include "kernels/linear/linear_cuda.h"

namespace lamplighter {
namespace {

unsigned packed_blocks(const LinearArgs& args) {
  return grid_size((args.out_features + kLinearBlock - 1) / kLinearBlock);
}

template <int kBits, int kSteps>
void launch_rounded(const LinearArgs& args, cudaStream_t stream) {
  const bool whole = args.in % kLinearGroup == 0 && reinterpret_cast<uintptr_t>(args.x) % 8 == 0;
  const auto kernel =
      whole ? rounded_linear_kernel<kBits, true, kSteps> : rounded_linear_kernel<kBits, false, kSteps>;
  kernel<<<packed_blocks(args), kRoundedThreads, 0, stream>>>(args);
}

template <int kBits>
void launch_rounded(const LinearArgs& args, cudaStream_t stream) {
  if (args.rows <= kRoundedColumns) return launch_rounded<kBits, 1>(args, stream);
  if (args.rows <= 2 * kRoundedColumns) return launch_rounded<kBits, 2>(args, stream);
  launch_rounded<kBits, 4>(args, stream);
}

}  // namespace

void rounded_linear_cuda(const LinearArgs& args, void* stream) {
  if (args.format == LinearFormat::kInt8) return launch_rounded<8>(args, cuda_stream(stream));
  launch_rounded<4>(args, cuda_stream(stream));
}

void expand_rounded_cuda(const LinearArgs& args, void* stream) {
  const auto kernel =
      args.format == LinearFormat::kInt8 ? expand_rounded_kernel<8> : expand_rounded_kernel<4>;
  kernel<<<packed_blocks(args), kRoundedThreads, 0, cuda_stream(stream)>>>(args);
}

}  // namespace lamplighter
