#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/commit/compact.h"
#include "kernels/common/checks.h"

namespace lamplighter {

// cache [layers, 2, S, kv_heads, slots, head_dim] of fp32, bf16 or fp16, or rounded rows in int8; lengths
// int64 [S]; path int64 [I, A]; count int64 [I]; S = I or 2 I. Contents are not read.
inline CompactArgs compact_args(at::Tensor& cache, const at::Tensor& lengths, const at::Tensor& path,
                                const at::Tensor& count) {
  constexpr const char* kOp = "compact_cache";
  const at::ScalarType dtype = cache.scalar_type();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf || dtype == at::kChar, kOp,
              ": cache has dtype ", dtype, ", expected float32, bfloat16, float16 or int8");
  check_contiguous(kOp, "cache", cache);
  check_shape(kOp, "cache", cache, {kAny, 2, kAny, kAny, kAny, kAny});
  check_tensor(kOp, "lengths", lengths, at::kLong, cache.device());
  check_shape(kOp, "lengths", lengths, {cache.size(2)});
  check_tensor(kOp, "path", path, at::kLong, cache.device());
  check_shape(kOp, "path", path, {kAny, kAny});
  const int64_t sequences = cache.size(2), images = path.size(0);
  TORCH_CHECK(sequences == images || sequences == 2 * images, kOp, ": cache holds ", sequences,
              " sequences, expected ", images, " or ", 2 * images, " for ", images, " images");
  check_tensor(kOp, "count", count, at::kLong, cache.device());
  check_shape(kOp, "count", count, {images});
  CompactArgs args{};
  args.cache = cache.mutable_data_ptr();
  args.lengths = lengths.const_data_ptr<int64_t>();
  args.path = path.const_data_ptr<int64_t>();
  args.count = count.const_data_ptr<int64_t>();
  args.planes = cache.size(0) * 2;
  args.sequences = sequences;
  args.kv_heads = cache.size(3);
  args.slots = cache.size(4);
  args.row_bytes = cache.size(5) * static_cast<int64_t>(cache.element_size());
  args.images = images;
  args.sequences_per_image = sequences == images ? 1 : 2;
  args.width = path.size(1);
  return args;
}

}  // namespace lamplighter
