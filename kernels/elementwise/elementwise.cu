#include "kernels/common/cuda/launch.h"
#include "kernels/elementwise/elementwise_cuda.h"

namespace lamplighter {

void rms_norm_cuda(const RmsNormArgs& args, void* stream) {
  if (args.rows == 0) return;
  with_element_type(args.type, [&](auto element) {
    using T = decltype(element);
    constexpr int kPack = 16 / static_cast<int>(sizeof(T));
    const bool packed = pack_size<T>(args.width, {args.x, args.residual, args.weight, args.out}) == kPack;
    const auto kernel = packed ? rms_norm_kernel<T, kPack> : rms_norm_kernel<T, 1>;
    launch_chained(kernel, dim3(grid_size(args.rows)), kElementwiseThreads, 0, cuda_stream(stream), args);
  });
}

void silu_mul_cuda(const SiluMulArgs& args, void* stream) {
  if (args.rows == 0) return;
  with_element_type(args.type, [&](auto element) {
    using T = decltype(element);
    constexpr int kPack = 16 / static_cast<int>(sizeof(T));
    const int size = pack_size<T>(args.width, {args.gate_up, args.out});
    const int64_t blocks = (args.rows * (args.width / size) + kElementwiseThreads - 1) / kElementwiseThreads;
    const auto kernel = size == kPack ? silu_mul_kernel<T, kPack> : silu_mul_kernel<T, 1>;
    launch_chained(kernel, dim3(grid_size(blocks)), kElementwiseThreads, 0, cuda_stream(stream), args);
  });
}

void gelu_cuda(const GeluArgs& args, void* stream) {
  if (args.rows == 0) return;
  with_element_type(args.type, [&](auto element) {
    using T = decltype(element);
    constexpr int kPack = 16 / static_cast<int>(sizeof(T));
    const int size = pack_size<T>(args.width, {args.x, args.out});
    const int64_t packs = args.rows * (args.width / size);
    const auto kernel = size == kPack ? gelu_kernel<T, kPack> : gelu_kernel<T, 1>;
    launch_chained(kernel, dim3(grid_size((packs + kElementwiseThreads - 1) / kElementwiseThreads)),
                   kElementwiseThreads, 0, cuda_stream(stream), args);
  });
}

void norm_heads_cuda(const NormHeadsArgs& args, void* stream) {
  if (args.rows == 0) return;
  with_element_type(args.type, [&](auto element) {
    using T = decltype(element);
    constexpr int kPack = 16 / static_cast<int>(sizeof(T));
    const bool rows_aligned = args.width % kPack == 0;
    const int size = pack_size<T>(args.head_dim, {args.values, args.weight, args.bias});
    const int64_t threads = args.rows * args.heads * 32;
    const auto kernel = rows_aligned && size == kPack ? norm_heads_kernel<T, kPack> : norm_heads_kernel<T, 1>;
    const int64_t blocks = (threads + kElementwiseThreads - 1) / kElementwiseThreads;
    launch_chained(kernel, dim3(grid_size(blocks)), kElementwiseThreads, 0, cuda_stream(stream), args);
  });
}

}  // namespace lamplighter
