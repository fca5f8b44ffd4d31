#pragma once

#include <cstdint>

namespace lamplighter {

// What happens around a product of few rows x with plain weights W [out_features, in] on CUDA; all of it bf16
// with sums in fp32.
enum class FewRowsForm {
  kPlain,  // out = round(x W^T)
  kAdd,    // out = round(out + round(x W^T))
  kNorm,   // out = round(s x' W^T) with x' = round(x * norm) and s = rsqrt(mean(x^2) + eps): the norm of
           // RmsNormArgs, its scale put behind the product
  kGated,  // with a and b the halves of what kNorm gives: out = round(round(silu(a)) * b)
};

struct FewRowsArgs {
  const void* x;       // [rows, in]
  const void* weight;  // [out_features, in]
  const void* norm;    // [in], for kNorm and kGated
  void* out;           // [rows, out_features], of kGated half as wide
  int64_t rows;
  int64_t in;
  int64_t out_features;
  float eps;
  FewRowsForm form;
};

constexpr int64_t kFewRows = 16;   // the most of any weights
constexpr int64_t kMoreRows = 32;  // the most of weights so few that starting kernels costs as much as
constexpr int64_t kMoreRowsWeights = 10 * 1000 * 1000;  // reading them, measured on an H200
constexpr int64_t kFewRowsFeatures = 16;                // output features of a tile
constexpr int64_t kFewRowsGroup = 32;                   // input features of a warp's step

// Output features of a block.
inline int64_t few_rows_block(const FewRowsArgs& args) {
  const bool two_tiles =
      args.form == FewRowsForm::kGated || (args.form == FewRowsForm::kNorm && args.rows > kFewRows);
  return two_tiles ? 2 * kFewRowsFeatures : kFewRowsFeatures;
}

// Whether the kernels take these sizes and addresses.
inline bool takes_few_rows(const FewRowsArgs& args) {
  const auto aligned = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
  const int64_t most = args.in * args.out_features <= kMoreRowsWeights ? kMoreRows : kFewRows;
  return args.rows <= most && args.in % kFewRowsGroup == 0 && args.out_features % few_rows_block(args) == 0 &&
         aligned(args.x) && aligned(args.weight) && aligned(args.norm);
}

// Queued on `stream` (a cudaStream_t). A row's bits depend on that row and the weights alone.
void few_rows_cuda(const FewRowsArgs& args, void* stream);

}  // namespace lamplighter
