#pragma once

#include "kernels/attend/attend.h"
#include "kernels/common/cuda/numbers.h"

// What the attention kernels of CUDA share: which keys a row sees, and rotation.
namespace lamplighter {
namespace {

__device__ inline float minus_infinity() {
  return -__int_as_float(0x7F800000);
}

__device__ inline int64_t prefix_length(const AttendArgs& args, int64_t sequence) {
  const int64_t length = args.lengths[sequence];
  return length < 0 ? 0 : length < args.max_length ? length : args.max_length;
}

__device__ inline const int64_t* mask_row(const AttendArgs& args, int64_t sequence, int64_t row) {
  // Divided as 32 bits, which takes a device far fewer steps.
  const int64_t mask = static_cast<uint32_t>(sequence) / static_cast<uint32_t>(args.sequences_per_mask);
  return args.tree_mask + (mask * args.rows + row) * args.mask_words;
}

// Columns that the mask of a sequence speaks of.
__device__ inline int64_t mask_columns(const AttendArgs& args, int64_t sequence, int64_t length) {
  const int64_t columns = args.starts[sequence] - length + args.rows;
  const int64_t bits = args.mask_words * 64;
  return columns < 0 ? 0 : columns < bits ? columns : bits;
}

// Cosines and sines of a row's position.
__device__ inline const float* rotary_row(const AttendArgs& args, int64_t sequence, int64_t row) {
  const int64_t position = args.positions[sequence * args.rows + row];
  const int64_t entry = position < 0 ? 0 : position < args.table_rows ? position : args.table_rows - 1;
  return args.rotary + entry * args.head_dim;
}

template <class T>
struct Rotated {
  T first;
  T second;
};

// A pair of features turned by the angle whose cosine and sine stand at `angle`.
template <class T>
__device__ __forceinline__ Rotated<T> rotate(T first, T second, const float* angle) {
  const float x = widen(first);
  const float y = widen(second);
  return {narrow<T>(__fsub_rn(__fmul_rn(x, angle[0]), __fmul_rn(y, angle[1]))),
          narrow<T>(__fadd_rn(__fmul_rn(y, angle[0]), __fmul_rn(x, angle[1])))};
}

}  // namespace
}  // namespace lamplighter
