#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/attend/attend.h"
#include "kernels/common/checks.h"

namespace lamplighter {

// Arguments of the operator `attend` (schemas.cpp) checked and turned into a parameter block, for every
// device. `out` stays to be set. Contents (lengths, positions, mask bits) are not read.
inline AttendArgs attend_args(const at::Tensor& qkv, const at::Tensor& cache, int64_t layer,
                              const at::Tensor& positions, const at::Tensor& lengths,
                              const at::Tensor& tree_mask, const at::Tensor& rotary, int64_t heads,
                              int64_t kv_heads, double scale) {
  constexpr const char* op = "attend";
  const at::Device device = qkv.device();
  check_activations(op, "qkv", qkv);
  check_tensor(op, "cache", cache, qkv.scalar_type(), device);
  check_tensor(op, "positions", positions, at::kLong, device);
  check_tensor(op, "lengths", lengths, at::kLong, device);
  check_tensor(op, "tree_mask", tree_mask, at::kLong, device);
  check_tensor(op, "rotary", rotary, at::kFloat, device);
  TORCH_CHECK(kv_heads > 0 && heads > 0 && heads % kv_heads == 0, op, ": got ", heads, " heads and ",
              kv_heads, " kv_heads, expected a positive multiple");
  TORCH_CHECK(cache.dim() == 6, op, ": cache has shape ", cache.sizes(),
              ", expected [layers, 2, sequences, kv_heads, max_length, head_dim]");
  const int64_t head_dim = cache.size(5);
  TORCH_CHECK(head_dim > 0 && head_dim % 2 == 0, op, ": head_dim of the cache is ", head_dim,
              ", expected an even number");
  TORCH_CHECK(layer >= 0 && layer < cache.size(0), op, ": layer is ", layer, ", the cache has ",
              cache.size(0));
  check_shape(op, "qkv", qkv, {kAny, kAny, (heads + 2 * kv_heads) * head_dim});
  const int64_t sequences = qkv.size(0);
  const int64_t rows = qkv.size(1);
  check_shape(op, "cache", cache, {kAny, 2, sequences, kv_heads, kAny, head_dim});
  check_shape(op, "positions", positions, {sequences, rows});
  const bool grows = lengths.dim() == 2;
  if (grows) {
    check_shape(op, "lengths", lengths, {2, sequences});
  } else {
    check_shape(op, "lengths", lengths, {sequences});
  }
  check_shape(op, "rotary", rotary, {kAny, head_dim / 2, 2});

  AttendArgs args{};
  args.lengths = lengths.const_data_ptr<int64_t>();
  args.starts = grows ? args.lengths + sequences : args.lengths;
  args.sequences_per_mask = 1;
  if (tree_mask.numel() > 0) {
    check_shape(op, "tree_mask", tree_mask, {kAny, rows, grows ? kAny : (rows + 63) / 64});
    args.mask_words = tree_mask.size(2);
    const int64_t masks = tree_mask.size(0);
    TORCH_CHECK(sequences % masks == 0, op, ": tree_mask has ", masks, " masks, expected 1 or a divisor of ",
                sequences, " sequences");
    args.sequences_per_mask = sequences / masks;
    args.tree_mask = tree_mask.const_data_ptr<int64_t>();
  } else {
    args.lengths = args.starts;
  }
  const size_t plane = static_cast<size_t>(cache.stride(1)) * cache.element_size();
  char* keys = static_cast<char*>(cache.mutable_data_ptr()) + 2 * plane * static_cast<size_t>(layer);
  args.qkv = qkv.const_data_ptr();
  args.keys = keys;
  args.values = keys + plane;
  args.positions = positions.const_data_ptr<int64_t>();
  args.rotary = rotary.const_data_ptr<float>();
  args.sequences = sequences;
  args.rows = rows;
  args.heads = heads;
  args.kv_heads = kv_heads;
  args.head_dim = head_dim;
  args.max_length = cache.size(4);
  args.table_rows = rotary.size(0);
  args.scale = static_cast<float>(scale);
  args.type = element_type(qkv);
  return args;
}

}  // namespace lamplighter
