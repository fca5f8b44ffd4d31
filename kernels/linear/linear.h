#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/element_type.h"
#include "kernels/common/isa.h"

namespace lamplighter {

// How packed weights are stored: ceil(out_features / 16) blocks; block b holds the output features
// [16 b, 16 b + 16), features past the last are zero. Inside a block:
//   kFloat32   fp32 [in][16]
//   kBFloat16  bf16 [in / 2][16][2], pairs of input features side by side, then [16] of the last feature when
//              `in` is odd
//   kInt8      fp32 scales [16], then int8 [in / 2][16][2]; `in` is even, a zero being added where it was not
enum class LinearFormat { kFloat32, kBFloat16, kInt8 };

// out = x W^T for few rows, over packed weights (pack_linear, pack_linear_int8). All pointers address
// contiguous elements. kFloat32, kBFloat16: x and out of that type, sums in fp32, rounded once. kInt8:
// weights are integers up to 127 times the scale of their output feature, x integers up to
// linear_int8_most(in) times the scale of their row (linear_quantise_cpu), so that no sum leaves the 32 bits
// it is kept in; the exact sums are multiplied by the scale of the feature, then by that of the row, and
// rounded to bf16.
struct LinearArgs {
  const void* x;            // [rows, in]; int16 for kInt8
  const float* row_scales;  // [rows], kInt8 only
  const void* weight;       // packed
  void* out;                // [rows, out_features]; bf16 for kInt8
  int64_t rows;
  int64_t in;  // even for kInt8
  int64_t out_features;
  int64_t rows_per_pass;  // rows that share one pass over the weights: linear_rows_per_pass()
  LinearFormat format;
};

constexpr int64_t kLinearBlock = 16;                // output features of a packed block
constexpr int64_t kLinearInt8Header = 4;            // scales of a block, in rows of 16 bytes
constexpr float kLinearInt8Smallest = 0x1p-100F;    // ranges below count as this
constexpr int64_t kLinearInt8MostInputs = 1 << 17;  // leaves x a range of -129..129

// Largest |x| in the int16 rows that meet int8 weights: in * 127 * most < 2^31.
constexpr int64_t linear_int8_most(int64_t in) {
  constexpr int64_t kInt16 = 32767;
  const int64_t fit = ((int64_t{1} << 31) - 1) / (127 * in);
  return fit < kInt16 ? fit : kInt16;
}

// Copies the blocks [begin, end) of weight [out_features, in] to their packed form.
void pack_linear_blocks(const void* weight, void* packed, int64_t out_features, int64_t in, ElementType type,
                        int64_t begin, int64_t end);

// The same to kInt8; `padded` is `in` made even. A feature is divided by its largest |weight| / 127 and
// rounded to the nearest integers; one with a weight that is not finite gets NaN as scale.
void pack_linear_int8_blocks(const void* weight, void* packed, int64_t out_features, int64_t in,
                             int64_t padded, ElementType type, int64_t begin, int64_t end);

// bf16 x [rows, in] -> `to` [rows, padded] and the scales of the rows; NaN for a row that is not finite.
// Equal bits for all instruction sets.
template <Isa isa>
void linear_quantise_cpu(const uint16_t* x, int64_t rows, int64_t in, int64_t padded, int16_t* to,
                         float* scales);

int64_t linear_rows_per_pass(int64_t rows, int64_t in);

// CPU kernels over the packed blocks [begin, end). Every output is one chain of sums in the order of the
// input features, so its bits depend on its row of x and on its weights alone: not on other rows and not on
// the partition of the blocks. They do depend on the kernel, but for kInt8. `scratch`: linear_scratch_bytes()
// bytes, 64-byte aligned, private to the calling thread.
size_t linear_scratch_bytes(const LinearArgs& args);
template <Isa isa>
void linear_cpu(const LinearArgs& args, int64_t begin, int64_t end, void* scratch);
// The same of kBFloat16 for Isa::kAmx.
void linear_bfloat16_amx(const LinearArgs& args, int64_t begin, int64_t end, void* scratch);

}  // namespace lamplighter
