#pragma once

#include "kernels/common/cuda/numbers.h"
#include "kernels/linear/linear.h"

// Products of weights in 8 or 4 bits on CUDA, for few rows: weights become bf16 in registers, tensor cores
// multiply them with the rows, sums are fp32.
//
// A block takes a packed block of 16 output features, its warps take turns with the groups of 64 input
// features. Of the 16 inputs of a tensor core's step lane 4 g + t holds four neighbours, wherever the group
// has them: the order of the inputs is the same for weights and rows, and no shared memory is needed.
// Every output is a chain of sums whose order depends on `in` alone, so its bits depend on its row of x and
// on its weights, not on other rows.
namespace lamplighter {
namespace {

constexpr int kRoundedWarps = 8;
constexpr int kRoundedThreads = 32 * kRoundedWarps;
constexpr int kRoundedColumns = 8;  // rows of x in one step of a tensor core

// Two bf16 in a word, the first one low.
__device__ __forceinline__ uint32_t bfloat16_pair(float first, float second) {
  return float_bits(first) >> 16 | (float_bits(second) & 0xFFFF0000U);  // exact for integers up to 256
}

// Four weights as two pairs.
struct FourWeights {
  uint32_t low, high;
};

// Bytes with the offset 128.
__device__ __forceinline__ FourWeights from_bytes(uint32_t bytes) {
  const auto value = [=](int i) { return bits_float(0x4B000000U | (bytes >> 8 * i & 0xFFU)) - 8388736.0F; };
  return {bfloat16_pair(value(0), value(1)), bfloat16_pair(value(2), value(3))};
}

// The low halves of bytes, with the offset 8.
__device__ __forceinline__ FourWeights from_half_bytes(uint32_t bytes) {
  const auto value = [=](int i) { return bits_float(0x4B000000U | (bytes >> 8 * i & 0xFU)) - 8388616.0F; };
  return {bfloat16_pair(value(0), value(1)), bfloat16_pair(value(2), value(3))};
}

__device__ __forceinline__ uint32_t load_word(const char* from) {
  return *reinterpret_cast<const uint32_t*>(from);
}

// The inputs [k, k + 4) of row n as two pairs, zeros past the last row and the last input. kWhole: `in`
// counts whole groups.
template <bool kWhole>
__device__ __forceinline__ FourWeights load_inputs(const LinearArgs& args, int64_t n, int64_t k) {
  if (n >= args.rows) return {0, 0};
  const auto* row = static_cast<const uint16_t*>(args.x) + n * args.in;
  if constexpr (kWhole) {
    const auto words = load_pack<uint32_t, 2>(reinterpret_cast<const uint32_t*>(row + k));
    return {words.element[0], words.element[1]};
  } else {
    const auto at = [&](int64_t i) { return i < args.in ? uint32_t{row[i]} : 0U; };
    return {at(k) | at(k + 1) << 16, at(k + 2) | at(k + 3) << 16};
  }
}

// One step of the tensor core: four inputs of the features g and g + 8 times the inputs of every column's
// row.
template <bool kWhole, int kSteps>
__device__ __forceinline__ void add_four(const LinearArgs& args, const FourWeights& upper,
                                         const FourWeights& lower, int64_t k, float (&sum)[kSteps][4]) {
  const uint32_t weights[4] = {upper.low, lower.low, upper.high, lower.high};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    const int64_t n = kRoundedColumns * step + threadIdx.x % 32 / 4;
    const FourWeights x = load_inputs<kWhole>(args, n, k);
    multiply_add(sum[step], weights, x.low, x.high, BFloat16Bits{});
  }
}

// Adds a group of 64 inputs in 8 bits; the scales come at the end.
template <bool kWhole, int kSteps>
__device__ __forceinline__ void add_byte_group(const LinearArgs& args, const char* block, int64_t group,
                                               float (&sum)[kSteps][4]) {
  const int g = static_cast<int>(threadIdx.x) % 32 / 4, t = static_cast<int>(threadIdx.x) % 4;
  const char* words =
      block + 4 * kLinearBlock + group * kLinearGroup * kLinearBlock + (t * kLinearBlock + g) * 4;
  uint32_t upper[4], lower[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    upper[i] = load_word(words + i * 16 * kLinearBlock);
    lower[i] = load_word(words + i * 16 * kLinearBlock + 32);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    add_four<kWhole>(args, from_bytes(upper[i]), from_bytes(lower[i]), kLinearGroup * group + 16 * i + 4 * t,
                     sum);
  }
}

// The same in 4 bits; a group has its own scales.
template <bool kWhole, int kSteps>
__device__ __forceinline__ void add_half_byte_group(const LinearArgs& args, const char* block, int64_t group,
                                                    float (&sum)[kSteps][4]) {
  const int g = static_cast<int>(threadIdx.x) % 32 / 4, t = static_cast<int>(threadIdx.x) % 4;
  const char* scales = block + group * kLinearBlock * (2 + kLinearGroup / 2);
  const char* words = scales + 2 * kLinearBlock + (t * kLinearBlock + g) * 4;
  uint32_t upper[2], lower[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    upper[i] = load_word(words + i * 16 * kLinearBlock);
    lower[i] = load_word(words + i * 16 * kLinearBlock + 32);
  }
  const auto* scale = reinterpret_cast<const BFloat16Bits*>(scales);
  const float upper_scale = widen(scale[g]), lower_scale = widen(scale[g + 8]);
  float of_group[kSteps][4] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int shift = i % 2 * 4;
    add_four<kWhole>(args, from_half_bytes(upper[i / 2] >> shift), from_half_bytes(lower[i / 2] >> shift),
                     kLinearGroup * group + 8 * (t + i / 2 * 4) + i % 2 * 4, of_group);
  }
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sum[step][i] = fmaf(i < 2 ? upper_scale : lower_scale, of_group[step][i], sum[step][i]);
    }
  }
}

// out = x W^T for up to kRoundedColumns kSteps rows. A block per packed block.
template <int kBits, bool kWhole, int kSteps>
__global__ void __launch_bounds__(kRoundedThreads) rounded_linear_kernel(LinearArgs args) {
  __shared__ float partial[kRoundedWarps][kSteps * kRoundedColumns * kLinearBlock];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const char* block =
      static_cast<const char*>(args.weight) + blockIdx.x * linear_integer_block_bytes(kBits, args.in);
  float sum[kSteps][4] = {};
  for (int64_t group = warp; group < linear_groups(args.in); group += kRoundedWarps) {
    if constexpr (kBits == 8) {
      add_byte_group<kWhole>(args, block, group, sum);
    } else {
      add_half_byte_group<kWhole>(args, block, group, sum);
    }
  }
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int feature = lane / 4 + i / 2 * 8, column = kRoundedColumns * step + lane % 4 * 2 + i % 2;
      partial[warp][column * kLinearBlock + feature] = sum[step][i];
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kSteps * kRoundedColumns * kLinearBlock;
       i += kRoundedThreads) {
    const int64_t n = i / kLinearBlock, feature = blockIdx.x * kLinearBlock + i % kLinearBlock;
    if (n >= args.rows || feature >= args.out_features) continue;
    float total = partial[0][i];
    for (int w = 1; w < kRoundedWarps; ++w) total += partial[w][i];
    if constexpr (kBits == 8) total *= reinterpret_cast<const float*>(block)[i % kLinearBlock];
    static_cast<BFloat16Bits*>(args.out)[n * args.out_features + feature] = narrow<BFloat16Bits>(total);
  }
}

// The weights that a packed block stands for, bf16 [out_features, in]: of args alone weight, out and the
// sizes.
template <int kBits>
__global__ void __launch_bounds__(kRoundedThreads) expand_rounded_kernel(LinearArgs args) {
  const char* block =
      static_cast<const char*>(args.weight) + blockIdx.x * linear_integer_block_bytes(kBits, args.in);
  const int64_t count = kLinearBlock * args.in;
  for (int64_t i = threadIdx.x; i < count; i += kRoundedThreads) {
    const int64_t feature = i / args.in, k = i % args.in, within = k % kLinearGroup;
    if (blockIdx.x * kLinearBlock + feature >= args.out_features) return;
    float value;
    if constexpr (kBits == 8) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(block + 4 * kLinearBlock);
      value = static_cast<float>(int{bytes[k / 4 * 4 * kLinearBlock + feature * 4 + k % 4]} - 128) *
              reinterpret_cast<const float*>(block)[feature];
    } else {
      const char* scales = block + k / kLinearGroup * kLinearBlock * (2 + kLinearGroup / 2);
      const auto* bytes = reinterpret_cast<const uint8_t*>(scales + 2 * kLinearBlock);
      const int both = bytes[within / 8 * 4 * kLinearBlock + feature * 4 + within % 4];
      value = static_cast<float>((within % 8 < 4 ? both & 15 : both >> 4) - 8) *
              widen(reinterpret_cast<const BFloat16Bits*>(scales)[feature]);
    }
    static_cast<BFloat16Bits*>(args.out)[(blockIdx.x * kLinearBlock + feature) * args.in + k] =
        narrow<BFloat16Bits>(value);
  }
}

}  // namespace
}  // namespace lamplighter
