#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/element_type.h"

namespace lamplighter {

// out = x W^T for few rows, over packed weights (pack_linear). All pointers address contiguous elements of
// `type`, fp32 or bf16; sums are fp32, rounded to `type` once.
//
// Packed weights: ceil(out_features / 16) blocks of in * 16 elements; block b holds the output features
// [16 b, 16 b + 16), features past the last are zero. Inside a block:
//   fp32  [in][16]
//   bf16  [in / 2][16][2], pairs of input features side by side, then [16] of the last feature when `in` is
//   odd
struct LinearArgs {
  const void* x;       // [rows, in]
  const void* weight;  // packed
  void* out;           // [rows, out_features]
  int64_t rows;
  int64_t in;
  int64_t out_features;
  int64_t rows_per_pass;  // rows that share one pass over the weights: linear_rows_per_pass()
  ElementType type;
};

constexpr int64_t kLinearBlock = 16;  // output features of a packed block

// Copies the blocks [begin, end) of weight [out_features, in] to their packed form.
void pack_linear_blocks(const void* weight, void* packed, int64_t out_features, int64_t in, ElementType type,
                        int64_t begin, int64_t end);

int64_t linear_rows_per_pass(int64_t rows, int64_t in);

// CPU kernels over the packed blocks [begin, end). Every output is one chain of sums in the order of the
// input features, so its bits depend on its row of x and on its weights alone: not on other rows and not on
// the partition of the blocks. They do depend on the kernel. `scratch`: linear_scratch_bytes() bytes, 64-byte
// aligned, private to the calling thread.
size_t linear_scratch_bytes(const LinearArgs& args);
void linear_portable(const LinearArgs& args, int64_t begin, int64_t end, void* scratch);
void linear_avx2(const LinearArgs& args, int64_t begin, int64_t end, void* scratch);
void linear_avx512(const LinearArgs& args, int64_t begin, int64_t end, void* scratch);

}  // namespace lamplighter
