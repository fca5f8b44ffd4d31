#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/attend/rounded_cache.h"
#include "kernels/common/checks.h"

namespace lamplighter {

// Features of a row of the cache, rounded or not; for tensors of sizes and of symbols.
template <typename Size>
Size head_dim_of(const at::Tensor& cache, Size last) {
  return cache.scalar_type() == at::kChar ? last - kRowScaleBytes : last;
}

// The cache holds the dtype of qkv, or rounded rows (rounded_cache.h).
inline void check_cache_dtype(const at::Tensor& cache, const at::Tensor& qkv) {
  const at::ScalarType dtype = cache.scalar_type();
  TORCH_CHECK(dtype == qkv.scalar_type() || dtype == at::kChar, "attend: cache has dtype ", dtype,
              ", expected ", qkv.scalar_type(), " or Char (rounded)");
}

// Dtypes, devices and shapes of `attend`, lengths and masks apart.
inline void check_attend(const at::Tensor& qkv, const at::Tensor& cache, int64_t layer,
                         const at::Tensor& positions, const at::Tensor& lengths, const at::Tensor& tree_mask,
                         const at::Tensor& rotary, int64_t heads, int64_t kv_heads) {
  constexpr const char* op = "attend";
  const at::Device device = qkv.device();
  check_activations(op, "qkv", qkv);
  check_cache_dtype(cache, qkv);
  check_tensor(op, "cache", cache, cache.scalar_type(), device);
  check_tensor(op, "positions", positions, at::kLong, device);
  check_tensor(op, "lengths", lengths, at::kLong, device);
  check_tensor(op, "tree_mask", tree_mask, at::kLong, device);
  check_tensor(op, "rotary", rotary, at::kFloat, device);
  TORCH_CHECK(kv_heads > 0 && heads > 0 && heads % kv_heads == 0, op, ": got ", heads, " heads and ",
              kv_heads, " kv_heads, expected a positive multiple");
  TORCH_CHECK(cache.dim() == 6, op, ": cache has shape ", cache.sizes(),
              ", expected [layers, 2, sequences, kv_heads, max_length, head_dim]");
  const int64_t head_dim = head_dim_of(cache, cache.size(5));
  TORCH_CHECK(head_dim > 0 && head_dim % 2 == 0, op, ": head_dim of the cache is ", head_dim,
              ", expected an even number");
  TORCH_CHECK(layer >= 0 && layer < cache.size(0), op, ": layer is ", layer, ", the cache has ",
              cache.size(0));
  check_shape(op, "qkv", qkv, {kAny, kAny, (heads + 2 * kv_heads) * head_dim});
  check_shape(op, "cache", cache, {kAny, 2, qkv.size(0), kv_heads, kAny, cache.size(5)});
  check_shape(op, "positions", positions, {qkv.size(0), qkv.size(1)});
  if (lengths.dim() == 2) {
    check_shape(op, "lengths", lengths, {2, qkv.size(0)});
  } else {
    check_shape(op, "lengths", lengths, {qkv.size(0)});
  }
  check_shape(op, "rotary", rotary, {kAny, head_dim / 2, 2});
}

// What each row sees: lengths int64 [S] or [2, S]; tree_mask int64 [masks, R, words], or empty.
inline void set_visible(AttendArgs& args, const at::Tensor& lengths, const at::Tensor& tree_mask) {
  constexpr const char* op = "attend";
  const bool grows = lengths.dim() == 2;
  args.lengths = lengths.const_data_ptr<int64_t>();
  args.starts = grows ? args.lengths + args.sequences : args.lengths;
  args.sequences_per_mask = 1;
  if (tree_mask.numel() == 0) {
    args.lengths = args.starts;
    return;
  }
  check_shape(op, "tree_mask", tree_mask, {kAny, args.rows, grows ? kAny : (args.rows + 63) / 64});
  args.mask_words = tree_mask.size(2);
  const int64_t masks = tree_mask.size(0);
  TORCH_CHECK(args.sequences % masks == 0, op, ": tree_mask has ", masks,
              " masks, expected 1 or a divisor of ", args.sequences, " sequences");
  args.sequences_per_mask = args.sequences / masks;
  args.tree_mask = tree_mask.const_data_ptr<int64_t>();
}

// Arguments of the operator `attend` checked and turned into a parameter block, for every device: qkv [S, R,
// (heads + 2 kv_heads) head_dim], cache [layers, 2, S, kv_heads, max_length, head_dim] or
// rounded int8 [..., head_dim + kRowScaleBytes], positions [S, R], rotary fp32 [table_rows, head_dim / 2, 2].
// `out` stays to be set. Contents (lengths, positions, mask bits) are not read.
inline AttendArgs attend_args(const at::Tensor& qkv, const at::Tensor& cache, int64_t layer,
                              const at::Tensor& positions, const at::Tensor& lengths,
                              const at::Tensor& tree_mask, const at::Tensor& rotary, int64_t heads,
                              int64_t kv_heads, double scale) {
  check_attend(qkv, cache, layer, positions, lengths, tree_mask, rotary, heads, kv_heads);
  AttendArgs args{};
  args.sequences = qkv.size(0);
  args.rows = qkv.size(1);
  set_visible(args, lengths, tree_mask);
  const size_t plane = static_cast<size_t>(cache.stride(1)) * cache.element_size();
  char* keys = static_cast<char*>(cache.mutable_data_ptr()) + 2 * plane * static_cast<size_t>(layer);
  args.qkv = qkv.const_data_ptr();
  args.keys = keys;
  args.values = keys + plane;
  args.positions = positions.const_data_ptr<int64_t>();
  args.rotary = rotary.const_data_ptr<float>();
  args.heads = heads;
  args.kv_heads = kv_heads;
  args.head_dim = head_dim_of(cache, cache.size(5));
  args.rounded_cache = cache.scalar_type() == at::kChar;
  args.max_length = cache.size(4);
  args.table_rows = rotary.size(0);
  args.scale = static_cast<float>(scale);
  args.type = element_type(qkv);
  return args;
}

}  // namespace lamplighter
