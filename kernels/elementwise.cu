#include "kernels/cuda_executor.h"
#include "kernels/cuda_launch.h"
#include "kernels/cuda_numbers.h"
#include "kernels/elementwise.h"

namespace lamplighter {
namespace {

constexpr int kThreads = 256;

// One block per row. Thread t owns the packs t, t + kThreads, ... in both passes, so it reads back what it
// wrote.
template <class T, int kPack>
__global__ void __launch_bounds__(kThreads) rms_norm_kernel(RmsNormArgs args) {
  __shared__ BlockStorage storage;
  BlockExecutor<kThreads> executor(&storage);
  const int64_t start = int64_t{blockIdx.x} * args.width;
  const T* x = static_cast<const T*>(args.x) + start;
  T* residual = args.residual == nullptr ? nullptr : static_cast<T*>(args.residual) + start;
  const T* weight = static_cast<const T*>(args.weight);
  T* out = static_cast<T*>(args.out) + start;
  const auto square_sum = [=](int pack) {
    auto values = load_pack<T, kPack>(x + pack * kPack);
    if (residual != nullptr) {
      const auto old = load_pack<T, kPack>(residual + pack * kPack);
      for (int j = 0; j < kPack; ++j) {
        values.element[j] = narrow<T>(widen(old.element[j]) + widen(values.element[j]));
      }
      store_pack(residual + pack * kPack, values);
    }
    float sum = 0.0F;
    for (int j = 0; j < kPack; ++j) {
      const float value = widen(values.element[j]);
      sum += value * value;
    }
    return sum;
  };
  const int packs = static_cast<int>(args.width / kPack);
  const float sum = executor.reduce(packs, 0.0F, square_sum, [](float a, float b) { return a + b; });
  const float scale = 1.0F / sqrtf(sum / static_cast<float>(args.width) + args.eps);
  const T* row = residual == nullptr ? x : residual;
  for (int pack = static_cast<int>(threadIdx.x); pack < packs; pack += kThreads) {
    auto values = load_pack<T, kPack>(row + pack * kPack);
    const auto weights = load_pack<T, kPack>(weight + pack * kPack);
    for (int j = 0; j < kPack; ++j) {
      const float normed = rounded<T>(widen(values.element[j]) * scale);
      values.element[j] = narrow<T>(normed * widen(weights.element[j]));
    }
    store_pack(out + pack * kPack, values);
  }
}

template <class T, int kPack>
__global__ void __launch_bounds__(kThreads) silu_mul_kernel(SiluMulArgs args) {
  const int64_t packs = args.width / kPack;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= args.rows * packs) return;
  const int64_t row = i / packs;
  const int64_t column = i % packs * kPack;
  const T* gate = static_cast<const T*>(args.gate_up) + row * 2 * args.width + column;
  auto values = load_pack<T, kPack>(gate);
  const auto up = load_pack<T, kPack>(gate + args.width);
  for (int j = 0; j < kPack; ++j) {
    const float z = widen(values.element[j]);
    const float silu = rounded<T>(z / (1.0F + expf(-z)));
    values.element[j] = narrow<T>(silu * widen(up.element[j]));
  }
  store_pack(static_cast<T*>(args.out) + row * args.width + column, values);
}

}  // namespace

void rms_norm_cuda(const RmsNormArgs& args, void* stream) {
  if (args.rows == 0) return;
  with_element_type(args.type, [&](auto element) {
    using T = decltype(element);
    constexpr int kPack = 16 / static_cast<int>(sizeof(T));
    const bool packed = pack_size<T>(args.width, {args.x, args.residual, args.weight, args.out}) == kPack;
    const auto kernel = packed ? rms_norm_kernel<T, kPack> : rms_norm_kernel<T, 1>;
    kernel<<<grid_size(args.rows), kThreads, 0, cuda_stream(stream)>>>(args);
  });
}

void silu_mul_cuda(const SiluMulArgs& args, void* stream) {
  if (args.rows == 0) return;
  with_element_type(args.type, [&](auto element) {
    using T = decltype(element);
    constexpr int kPack = 16 / static_cast<int>(sizeof(T));
    const int size = pack_size<T>(args.width, {args.gate_up, args.out});
    const int64_t blocks = (args.rows * (args.width / size) + kThreads - 1) / kThreads;
    const auto kernel = size == kPack ? silu_mul_kernel<T, kPack> : silu_mul_kernel<T, 1>;
    kernel<<<grid_size(blocks), kThreads, 0, cuda_stream(stream)>>>(args);
  });
}

}  // namespace lamplighter
