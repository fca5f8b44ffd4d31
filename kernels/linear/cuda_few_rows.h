#pragma once

#include "kernels/common/cuda/numbers.h"
#include "kernels/linear/few_rows.h"

// Products of few rows with plain weights on CUDA, which cost the streaming of the weights. Norm, gate and
// sum with the residual are part of them: kernels of their own would cost more than their work.
//
// A block takes 16 output features, of kGated also those half of out_features further on; its warps take
// turns with groups of 32 input features. Lane 4 g + t loads eight neighbours of it, of the weights of the
// features g and g + 8 and of the row g of x: the inputs of two steps of a tensor core, whose order is the
// same for weights and rows. Every output is a chain of sums whose order depends on `in` alone.
//
// kDepth groups of a warp are on their way at any time, the first weights before the block waits for the
// kernels that give x.
namespace lamplighter {
namespace {

constexpr int kFewColumns = 8;  // rows of x in one step of a tensor core

// How a product runs: warps of a block, groups in flight, blocks of a processor. Measured on an H200.
template <FewRowsForm form, int kSteps>
struct FewRowsPlan {
  static constexpr bool kNorm = form == FewRowsForm::kNorm || form == FewRowsForm::kGated;
  static constexpr int kWarps = form == FewRowsForm::kAdd ? 16 : 8;  // few features: more of a processor each
  static constexpr int kDepths[] = {6, 5, 5, 3},
                       kDepthsOfTwo[] = {5, 4, 3, 2};  // by form, as registers allow
  static constexpr int kDepth = (kSteps == 1 ? kDepths : kDepthsOfTwo)[static_cast<int>(form)];
  static constexpr int kBlocks = 16 / kWarps;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kTiles = form == FewRowsForm::kGated ? 2 : 1;
  static constexpr int kStride = kWarps * static_cast<int>(kFewRowsGroup);
};

template <FewRowsForm form, int kSteps>
class FewRowsProduct {
  using Plan = FewRowsPlan<form, kSteps>;
  static constexpr int kTiles = Plan::kTiles, kFeatures = static_cast<int>(kFewRowsFeatures);

 public:
  static constexpr int kOutputs = kSteps * kFewColumns * kFeatures;  // of a tile

  // Rows past the last are the last again: their outputs are not stored.
  __device__ explicit FewRowsProduct(const FewRowsArgs& args) : args_(args) {
    const int g = lane() / 4, first = warp() * static_cast<int>(kFewRowsGroup) + lane() % 4 * 8;
    for (int tile = 0; tile < kTiles; ++tile) {
      const int64_t feature = int64_t{blockIdx.x} * kFeatures + g + tile * (args.out_features / kTiles);
      weights_[tile] = static_cast<const uint16_t*>(args.weight) + feature * args.in + first;
    }
    for (int step = 0; step < kSteps; ++step) {
      const int64_t n = kFewColumns * step + g;
      x_[step] = static_cast<const uint16_t*>(args.x) + (n < args.rows ? n : args.rows - 1) * args.in + first;
    }
    norm_ = static_cast<const uint16_t*>(args.norm) + first;
    groups_ = static_cast<int>((args.in / kFewRowsGroup - warp() + Plan::kWarps - 1) / Plan::kWarps);
  }

  // Sums of the warp's groups.
  __device__ __forceinline__ void run() {
    Group groups[Plan::kDepth];
#pragma unroll
    for (int i = 0; i < Plan::kDepth; ++i) {
      if (i < groups_) load_weights(groups[i], i);
    }
    wait_for_earlier_kernels();
#pragma unroll
    for (int i = 0; i < Plan::kDepth; ++i) {
      if (i < groups_) load_x(groups[i], i);
    }
    if (form == FewRowsForm::kAdd && threadIdx.x < args_.rows * kFeatures) old_ = widen(*place());
    for (int left = groups_; left > 0; left -= Plan::kDepth) {
#pragma unroll
      for (int i = 0; i < Plan::kDepth; ++i) {
        if (i >= left) break;
        add(groups[i]);
        if (i + Plan::kDepth >= left) continue;
        load_weights(groups[i], i + Plan::kDepth);
        load_x(groups[i], i + Plan::kDepth);
      }
      skip(Plan::kDepth);
    }
  }

  // The warp's sums for the block: partial[tile][row][feature], and of kNorm those of the squares of rows.
  __device__ __forceinline__ void share(float (&partial)[kTiles][kOutputs],
                                        float (&squares)[kSteps * kFewColumns]) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4 * kTiles; ++i) {
        const int feature = lane() / 4 + i % 4 / 2 * 8, row = kFewColumns * step + lane() % 4 * 2 + i % 2;
        partial[i / 4][row * kFeatures + feature] = sum_[i / 4][step][i % 4];
      }
      if constexpr (Plan::kNorm) {
        float sum = squares_[step];
        sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
        if (lane() % 4 == 0) squares[kFewColumns * step + lane() / 4] = sum;
      }
    }
  }

  // The thread's output, from all sums.
  __device__ __forceinline__ void store(const float (&total)[kTiles], float square) const {
    const float scale = Plan::kNorm ? 1.0F / sqrtf(square / static_cast<float>(args_.in) + args_.eps) : 1.0F;
    float value = rounded<BFloat16Bits>(total[0] * scale);
    if constexpr (form == FewRowsForm::kAdd) value += old_;
    if constexpr (form == FewRowsForm::kGated) {
      const float silu = rounded<BFloat16Bits>(value / (1.0F + expf(-value)));
      value = silu * rounded<BFloat16Bits>(total[kTiles - 1] * scale);
    }
    *place() = narrow<BFloat16Bits>(value);
  }

 private:
  struct Group {
    uint32_t upper[kTiles][4], lower[kTiles][4];  // weights of the features g and g + 8
    uint32_t x[kSteps][4];
    uint32_t norm[Plan::kNorm ? 4 : 1];
  };

  __device__ static int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }
  __device__ BFloat16Bits* place() const {
    const int64_t row = threadIdx.x / kFeatures, width = args_.out_features / kTiles;
    return static_cast<BFloat16Bits*>(args_.out) + row * width + int64_t{blockIdx.x} * kFeatures +
           threadIdx.x % kFeatures;
  }
  __device__ static int warp() {
    return static_cast<int>(threadIdx.x) / 32;
  }

  __device__ __forceinline__ void load_weights(Group& group, int number) const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      load_once(group.upper[tile], weights_[tile] + number * Plan::kStride);
      load_once(group.lower[tile], weights_[tile] + 8 * args_.in + number * Plan::kStride);
    }
    if constexpr (Plan::kNorm) load_pack(group.norm, norm_ + number * Plan::kStride);
  }

  __device__ __forceinline__ void load_x(Group& group, int number) const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) load_pack(group.x[step], x_[step] + number * Plan::kStride);
  }

  __device__ static __forceinline__ void load_pack(uint32_t (&to)[4], const uint16_t* from) {
    const auto words = lamplighter::load_pack<uint32_t, 4>(reinterpret_cast<const uint32_t*>(from));
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = words.element[i];
  }

  __device__ __forceinline__ void skip(int groups) {
    for (auto& weights : weights_) weights += groups * Plan::kStride;
    for (auto& x : x_) x += groups * Plan::kStride;
    norm_ += groups * Plan::kStride;
  }

  __device__ __forceinline__ void add(Group& group) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      auto& x = group.x[step];
      if constexpr (Plan::kNorm) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float low = bits_float(x[i] << 16), high = bits_float(x[i] & 0xFFFF0000U);
          squares_[step] = fmaf(high, high, fmaf(low, low, squares_[step]));
          x[i] = multiply_pairs(x[i], group.norm[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < 4 * kTiles; i += 2) {
        const auto& upper = group.upper[i / 4];
        const auto& lower = group.lower[i / 4];
        const uint32_t weights[4] = {upper[i % 4], lower[i % 4], upper[i % 4 + 1], lower[i % 4 + 1]};
        multiply_add(sum_[i / 4][step], weights, x[i % 4], x[i % 4 + 1], BFloat16Bits{});
      }
    }
  }

  const FewRowsArgs& args_;
  const uint16_t* weights_[kTiles];
  const uint16_t* x_[kSteps];
  const uint16_t* norm_;
  int groups_;  // of the warp
  float sum_[kTiles][kSteps][4] = {};
  float squares_[kSteps] = {};
  float old_ = 0;  // of the thread's output, for kAdd
};

template <FewRowsForm form, int kSteps>
__global__ void __launch_bounds__(FewRowsPlan<form, kSteps>::kThreads, FewRowsPlan<form, kSteps>::kBlocks)
    few_rows_kernel(FewRowsArgs args) {
  using Plan = FewRowsPlan<form, kSteps>;
  using Product = FewRowsProduct<form, kSteps>;
  __shared__ float partial[Plan::kWarps][Plan::kTiles][Product::kOutputs];
  __shared__ float squares[Plan::kWarps][kSteps * kFewColumns];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  let_next_kernel_start();
  Product product(args);
  product.run();
  product.share(partial[warp], squares[warp]);
  __syncthreads();
  static_assert(Product::kOutputs <= Plan::kThreads, "a thread has at most one output");
  if (threadIdx.x >= args.rows * kFewRowsFeatures) return;
  float total[Plan::kTiles] = {}, square = 0;
#pragma unroll
  for (int w = 0; w < Plan::kWarps; ++w) {
#pragma unroll
    for (int tile = 0; tile < Plan::kTiles; ++tile) total[tile] += partial[w][tile][threadIdx.x];
    if constexpr (Plan::kNorm) square += squares[w][threadIdx.x / kFewRowsFeatures];
  }
  product.store(total, square);
}

}  // namespace
}  // namespace lamplighter
