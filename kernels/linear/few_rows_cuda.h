#pragma once

#include "kernels/common/cuda/numbers.h"
#include "kernels/linear/few_rows.h"

// Products of few rows with plain weights on CUDA, which cost the streaming of the weights. Norm, gate and
// sum with the residual are part of them: kernels of their own would cost more than their work.
//
// A block takes 16 output features or a few times as many, of kGated also those half of out_features further
// on; its warps take turns with groups of 32 input features. Lane 4 g + t loads eight neighbours of it, of
// the weights of the features g and g + 8 and of the row g of x: the inputs of two steps of a tensor core,
// whose order is the same for weights and rows. Every output is a chain of sums whose order depends on `in`
// alone.
//
// kDepth groups of a warp are on their way at any time, the first weights before the block waits for the
// kernels that give x.
namespace lamplighter {
namespace {

constexpr int kFewColumns = 8;  // rows of x in one step of a tensor core

// How a product runs. Measured on an H200.
struct FewRowsShape {
  int tiles;   // of 16 features in a block; of kGated tiles of a and of b
  int warps;   // the same for any number of rows, because the order of sums depends on it
  int depth;   // groups of a warp in flight, as registers allow
  int blocks;  // of a processor
};

// By form, for up to 8, 16 and 32 rows.
constexpr FewRowsShape kFewRowsShapes[4][3] = {
    {{1, 8, 6, 2}, {1, 8, 5, 2}, {1, 8, 3, 2}},
    {{1, 16, 5, 1}, {1, 16, 4, 1}, {1, 16, 3, 1}},
    {{1, 8, 5, 2}, {1, 8, 3, 2}, {2, 8, 3, 1}},
    {{2, 8, 3, 2}, {2, 8, 2, 2}, {2, 8, 1, 2}},
};

template <FewRowsForm form, int kSteps>
struct FewRowsPlan {
  static constexpr FewRowsShape kShape = kFewRowsShapes[static_cast<int>(form)][kSteps / 2];
  static constexpr bool kGated = form == FewRowsForm::kGated;
  static constexpr bool kNorm = form == FewRowsForm::kNorm || kGated;
  static constexpr int kTiles = kShape.tiles, kWarps = kShape.warps, kDepth = kShape.depth;
  static constexpr int kBlocks = kShape.blocks, kThreads = 32 * kWarps;
  static constexpr int kOutputTiles = kGated ? 1 : kTiles;
  static constexpr int kStride = kWarps * static_cast<int>(kFewRowsGroup);
  static constexpr int kRows = kSteps * kFewColumns;
};

template <FewRowsForm form, int kSteps>
class FewRowsProduct {
  using Plan = FewRowsPlan<form, kSteps>;
  static constexpr int kTiles = Plan::kTiles, kFeatures = static_cast<int>(kFewRowsFeatures);
  static constexpr int kRowStride = kFeatures + 4;  // from a row's sums to the next one's: other banks

 public:
  // What the block shares: sums of every warp, and with kNorm the sums of the squares of rows.
  struct Sums {
    float products[Plan::kWarps][kTiles][Plan::kRows * kRowStride];
    float squares[Plan::kNorm ? Plan::kWarps : 1][Plan::kRows];
  };

  // Rows past the last are the last again: their outputs are not stored.
  __device__ explicit FewRowsProduct(const FewRowsArgs& args) : args_(args) {
    const int g = lane() / 4, first = warp() * static_cast<int>(kFewRowsGroup) + lane() % 4 * 8;
    for (int tile = 0; tile < kTiles; ++tile) {
      weights_[tile] =
          static_cast<const uint16_t*>(args.weight) + (first_feature(tile) + g) * args.in + first;
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
    if (form == FewRowsForm::kAdd && threadIdx.x < args_.rows * kFeatures)
      old_ = widen(*result_at(threadIdx.x));
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

  // The warp's sums for the block.
  __device__ __forceinline__ void share(Sums& sums) const {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4 * kTiles; ++i) {
        const int feature = lane() / 4 + i % 4 / 2 * 8, row = kFewColumns * step + lane() % 4 * 2 + i % 2;
        sums.products[warp()][i / 4][row * kRowStride + feature] = sum_[i / 4][step][i % 4];
      }
      if constexpr (Plan::kNorm) {
        float sum = squares_[step];
        sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
        if (lane() % 4 == 0) sums.squares[warp()][kFewColumns * step + lane() / 4] = sum;
      }
    }
  }

  // The thread's outputs, from the sums of all warps.
  __device__ __forceinline__ void store(const Sums& sums) const {
    constexpr int kOutputs = Plan::kRows * Plan::kOutputTiles * kFeatures;
    static_assert(form != FewRowsForm::kAdd || kOutputs <= Plan::kThreads, "a thread knows one old value");
#pragma unroll
    for (int first = 0; first < kOutputs; first += Plan::kThreads) {
      const int output = first + static_cast<int>(threadIdx.x);
      const int row = output / (Plan::kOutputTiles * kFeatures),
                tile = output / kFeatures % Plan::kOutputTiles;
      if (row >= args_.rows) return;
      const int at = row * kRowStride + output % kFeatures;
      float total = 0, up = 0, square = 0;
#pragma unroll
      for (int w = 0; w < Plan::kWarps; ++w) {
        total += sums.products[w][tile][at];
        if constexpr (Plan::kGated) up += sums.products[w][kTiles - 1][at];
        if constexpr (Plan::kNorm) square += sums.squares[w][row];
      }
      const float scale =
          Plan::kNorm ? 1.0F / sqrtf(square / static_cast<float>(args_.in) + args_.eps) : 1.0F;
      float value = rounded<BFloat16Bits>(total * scale);
      if constexpr (form == FewRowsForm::kAdd) value += old_;
      if constexpr (Plan::kGated) {
        const float silu = rounded<BFloat16Bits>(value / (1.0F + expf(-value)));
        value = silu * rounded<BFloat16Bits>(up * scale);
      }
      *result_at(output) = narrow<BFloat16Bits>(value);
    }
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
  // The first output feature of one of the block's tiles.
  __device__ int64_t first_feature(int tile) const {
    const int64_t block = blockIdx.x;
    return Plan::kGated ? block * kFeatures + tile * (args_.out_features / 2)
                        : (block * kTiles + tile) * kFeatures;
  }
  // The block's outputs are numbered row by row.
  __device__ BFloat16Bits* result_at(unsigned output) const {
    constexpr unsigned kWidth = Plan::kOutputTiles * kFeatures;
    const int64_t row = output / kWidth, width = Plan::kGated ? args_.out_features / 2 : args_.out_features;
    return static_cast<BFloat16Bits*>(args_.out) + row * width + int64_t{blockIdx.x} * kWidth +
           output % kWidth;
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
  float old_ = 0;  // at the thread's output, for kAdd
};

template <FewRowsForm form, int kSteps>
__global__ void __launch_bounds__(FewRowsPlan<form, kSteps>::kThreads, FewRowsPlan<form, kSteps>::kBlocks)
    few_rows_kernel(FewRowsArgs args) {
  using Product = FewRowsProduct<form, kSteps>;
  __shared__ typename Product::Sums sums;
  let_next_kernel_start();
  Product product(args);
  product.run();
  product.share(sums);
  __syncthreads();
  product.store(sums);
}

// The kernel for this number of rows.
template <FewRowsForm form>
auto few_rows_kernel_for(int64_t rows) {
  return rows <= 8    ? few_rows_kernel<form, 1>
         : rows <= 16 ? few_rows_kernel<form, 2>
                      : few_rows_kernel<form, 4>;
}

}  // namespace
}  // namespace lamplighter
