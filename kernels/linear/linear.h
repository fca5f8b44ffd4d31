#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/element_type.h"
#include "kernels/common/isa.h"
#include "kernels/common/kernel_inline.h"

namespace lamplighter {

// How packed weights are stored: ceil(out_features / 16) blocks; block b holds the output features
// [16 b, 16 b + 16), features past the last are zero. Inside a block:
//   kFloat32   fp32 [in][16]
//   kBFloat16  bf16 [in / 2][16][2], pairs of input features side by side, then [16] of the last feature when
//              `in` is odd
//   kInt8      fp32 scales [16], then uint8 [in / 4][16][4]: integers of -127 to 127, plus 128
//   kInt4      for every group of 64 input features bf16 scales [16], then uint8 [8][16][4]: integers of -8
//   to
//              7, plus 8; byte [k][o][j] has feature 8 k + j of the group in its low half, 8 k + 4 + j in the
//              high one
// In integers `in` counts as whole groups of 64; features past the last are zero.
enum class LinearFormat { kFloat32, kBFloat16, kInt8, kInt4 };

// out = x W^T for few rows, over packed weights (pack_linear). All pointers address contiguous elements. x
// and out are fp32 for kFloat32, else bf16. Floats: sums in fp32, rounded once. Integers: every group of 128
// features of a row of x (kInt4: 64) is rounded to integers of -127 to 127 times its scale; sums within a
// group are exact, the groups' sums are added in fp32, multiplied by the scales of weights and row, and
// rounded to bf16.
struct LinearArgs {
  const void* x;       // [rows, in]
  const void* weight;  // packed
  void* out;           // [rows, out_features]
  int64_t rows;
  int64_t in;
  int64_t out_features;
  int64_t rows_per_pass;  // rows that share one pass over the weights: linear_rows_per_pass()
  LinearFormat format;
};

constexpr int64_t kLinearBlock = 16;               // output features of a packed block
constexpr int64_t kLinearGroup = 64;               // input features of a weight with a scale of their own
constexpr int64_t kLinearRowGroup = 128;           // the same of a row, where weights are kInt8
constexpr float kLinearSmallestRange = 0x1p-100F;  // ranges below count as this
constexpr int64_t kLinearMostInputs = 1 << 20;

LAMPLIGHTER_INLINE constexpr int64_t linear_groups(int64_t in) {
  return (in + kLinearGroup - 1) / kLinearGroup;
}
// Bytes of a block of weights in 8 or 4 bits.
LAMPLIGHTER_INLINE constexpr int64_t linear_integer_block_bytes(int bits, int64_t in) {
  const int64_t scales = bits == 8 ? 4 * kLinearBlock : linear_groups(in) * 2 * kLinearBlock;
  return scales + linear_groups(in) * kLinearGroup * kLinearBlock * bits / 8;
}
// A rounded output feature in a bundle. 8 bits: int8 [in], then its fp32 scale. 4 bits: for every group of 64
// its bf16 scale, then uint8 [8][4] as in a block.
LAMPLIGHTER_INLINE constexpr int64_t linear_rounded_bytes(int bits, int64_t in) {
  return bits == 8 ? in + 4 : linear_groups(in) * (2 + kLinearGroup / 2);
}

// Copies the blocks [begin, end) of weight [out_features, in] to their packed form.
void pack_linear_blocks(const void* weight, void* packed, int64_t out_features, int64_t in, ElementType type,
                        int64_t begin, int64_t end);

// Rounds the features [begin, end) of weight [out_features, in] to 8 or 4 bits. 8 bits: a feature is divided
// by its largest |weight| / 127. 4 bits: a group has the scale, of several tried, that leaves the least
// squared error. A feature, or group, with a weight that is not finite gets NaN as scale.
void round_linear_features(const void* weight, void* rounded, int64_t in, ElementType type, int bits,
                           int64_t begin, int64_t end);

// Copies the blocks [begin, end) of rounded features to their packed form.
void pack_rounded_blocks(const void* rounded, void* packed, int64_t out_features, int64_t in, int bits,
                         int64_t begin, int64_t end);

int64_t linear_rows_per_pass(int64_t rows, int64_t in);

// Bytes that a kernel may take for 64 features of a row, and for a longer line of one: 4 for each feature,
// and what is kept of a group.
constexpr int64_t kLinearScratchBytes = 4 * kLinearGroup + 8;

// CPU kernels over the packed blocks [begin, end). Every output is one chain of sums in the order of the
// input features, so its bits depend on its row of x and on its weights alone: not on other rows and not on
// the partition of the blocks. Results in floating point do depend on the kernel. `scratch`:
// linear_scratch_bytes() bytes, 64-byte aligned, private to the calling thread.
size_t linear_scratch_bytes(const LinearArgs& args);
template <Isa isa>
void linear_cpu(const LinearArgs& args, int64_t begin, int64_t end, void* scratch);
// The same of kBFloat16 for Isa::kAmx.
void linear_bfloat16_amx(const LinearArgs& args, int64_t begin, int64_t end, void* scratch);
// The same of kInt8 and kInt4 for Isa::kAvxVnni, by instructions of AVX-VNNI (VEX) or AVX-512 (EVEX).
void linear_integers_vex(const LinearArgs& args, int64_t begin, int64_t end, void* scratch);
void linear_integers_evex(const LinearArgs& args, int64_t begin, int64_t end, void* scratch);

// All blocks by the kernel of this CPU, on several threads; it chooses rows_per_pass.
void linear_on_threads(LinearArgs args);

// CUDA kernels of kInt8 and kInt4 over packed weights, queued on `stream` (a cudaStream_t). Rows stay bf16:
// their products with the integers are summed in fp32 and scaled, by group in 4 bits.
constexpr int64_t kRoundedCudaRows = 32;  // the most that it takes
void rounded_linear_cuda(const LinearArgs& args, void* stream);
// The weights themselves as bf16 [out_features, in], for more rows: args.weight, args.out and sizes alone
// count.
void expand_rounded_cuda(const LinearArgs& args, void* stream);

}  // namespace lamplighter
