#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/attend/rounded_cache.h"
#include "tests/kernels/common/operators.h"

namespace lamplighter::test {

struct AttendShape {
  int64_t sequences = 1, rows = 1, heads = 1, kv_heads = 1, head_dim = 16, most_length = 0;
  int64_t masks = 0;  // 0 = causal rows
};

constexpr int64_t kLayers = 2;
constexpr int64_t kLayer = 1;
constexpr int64_t kTableRows = 64;

inline at::Tensor rotary_table(int64_t rows, int64_t head_dim) {
  at::Tensor table = at::empty({rows, head_dim / 2, 2}, at::kFloat);
  float* p = table.mutable_data_ptr<float>();
  for (int64_t i = 0; i < rows * head_dim / 2; ++i) {
    const double angle = static_cast<double>(i / (head_dim / 2)) * std::pow(0.7, i % (head_dim / 2));
    p[2 * i] = static_cast<float>(std::cos(angle));
    p[2 * i + 1] = static_cast<float>(std::sin(angle));
  }
  return table;
}

// visible[mask][row][column] -> packed tree_mask.
inline at::Tensor pack_mask(const std::vector<std::vector<std::vector<bool>>>& visible) {
  const auto masks = static_cast<int64_t>(visible.size());
  const auto rows = static_cast<int64_t>(visible[0].size());
  const auto columns = static_cast<int64_t>(visible[0][0].size());
  const int64_t words = (columns + 63) / 64;
  return integers({masks, rows, words}, [&](int64_t i) {
    uint64_t word = 0;
    for (int64_t j = 0; j < 64 && i % words * 64 + j < columns; ++j) {
      const auto& row = visible[static_cast<size_t>(i / words / rows)][static_cast<size_t>(i / words % rows)];
      if (row[static_cast<size_t>(i % words * 64 + j)]) word |= uint64_t{1} << j;
    }
    return static_cast<int64_t>(word);
  });
}

// Parents of a random tree or forest in index order, -1 for roots.
inline std::vector<int64_t> random_tree(std::mt19937& rng, int64_t rows) {
  std::vector<int64_t> parents;
  for (int64_t r = 0; r < rows; ++r) parents.push_back(pick(rng, std::max<int64_t>(-1, r - 6), r - 1));
  return parents;
}

// Indices of the path from a root to `node`, in order.
inline std::vector<int64_t> path_to(const std::vector<int64_t>& parents, int64_t node) {
  std::vector<int64_t> path;
  for (; node >= 0; node = parents[static_cast<size_t>(node)]) path.insert(path.begin(), node);
  return path;
}

inline std::vector<std::vector<bool>> ancestor_mask(const std::vector<int64_t>& parents) {
  std::vector<std::vector<bool>> visible(parents.size(), std::vector<bool>(parents.size(), false));
  for (size_t r = 0; r < parents.size(); ++r) {
    for (const int64_t j : path_to(parents, static_cast<int64_t>(r)))
      visible[r][static_cast<size_t>(j)] = true;
  }
  return visible;
}

// Cache indices of sequence s that every row sees, and the one where the rows of the call begin.
inline int64_t prefix_of(const AttendCall& call, int64_t s) {
  return call.lengths.flatten()[s].item<int64_t>();
}
inline int64_t start_of(const AttendCall& call, int64_t s) {
  return call.lengths.flatten()[call.lengths.numel() - call.qkv.size(0) + s].item<int64_t>();
}

// A random call. Cache contents that no row may read are NaN.
inline AttendCall make_call(std::mt19937& rng, const AttendShape& shape, at::ScalarType dtype) {
  AttendCall call;
  const int64_t s = shape.sequences;
  call.layer = kLayer;
  call.heads = shape.heads;
  call.kv_heads = shape.kv_heads;
  call.scale = 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
  call.qkv =
      random_tensor(rng, {s, shape.rows, (shape.heads + 2 * shape.kv_heads) * shape.head_dim}, dtype, 1.5F);
  call.lengths =
      integers({s}, [&](int64_t i) { return i == 0 ? shape.most_length : pick(rng, 0, shape.most_length); });
  call.positions = integers({s, shape.rows}, [&](int64_t) { return pick(rng, 0, kTableRows - 1); });
  call.rotary = rotary_table(kTableRows, shape.head_dim);
  const int64_t room = shape.most_length + shape.rows + 3;
  call.cache = at::full({kLayers, 2, s, shape.kv_heads, room, shape.head_dim},
                        std::numeric_limits<float>::quiet_NaN(), at::TensorOptions(dtype));
  for (int64_t i = 0; i < s; ++i) {
    const int64_t length = call.lengths[i].item<int64_t>();
    call.cache[kLayer]
        .select(1, i)
        .narrow(2, 0, length)
        .copy_(random_tensor(rng, {2, shape.kv_heads, length, shape.head_dim}, dtype));
  }
  std::vector<std::vector<std::vector<bool>>> masks;
  for (int64_t m = 0; m < shape.masks; ++m) masks.push_back(ancestor_mask(random_tree(rng, shape.rows)));
  call.tree_mask = masks.empty() ? at::empty({0}, at::kLong) : pack_mask(masks);
  return call;
}

// The rows [first, first + count) of a call, on `cache` in place, behind `before` of its rows.
inline AttendCall rows_of(const AttendCall& whole, const at::Tensor& cache, int64_t first, int64_t count,
                          int64_t before) {
  AttendCall part = whole;
  part.cache = cache;
  part.qkv = whole.qkv.narrow(1, first, count).contiguous();
  part.positions = whole.positions.narrow(1, first, count).contiguous();
  part.lengths = whole.lengths + before;
  if (whole.tree_mask.numel() > 0) {
    part.lengths = at::stack({whole.lengths, part.lengths});
    part.tree_mask = whole.tree_mask.narrow(1, first, count).contiguous();
  }
  return part;
}

// A random call that continues trees of up to `earlier` columns, as many as differ by sequence; any row may
// see any column beside its own.
inline AttendCall make_growing_call(std::mt19937& rng, AttendShape shape, int64_t earlier,
                                    at::ScalarType dtype) {
  const int64_t masks = shape.masks;
  shape.masks = 0;
  shape.most_length += earlier;
  AttendCall call = make_call(rng, shape, dtype);
  const at::Tensor starts = call.lengths;
  call.lengths = integers({2, shape.sequences}, [&](int64_t i) {
    const int64_t start = starts[i % shape.sequences].item<int64_t>();
    return i < shape.sequences ? pick(rng, std::max<int64_t>(0, start - earlier), start) : start;
  });
  if (masks == 0) return call;
  std::vector<std::vector<bool>> columns(static_cast<size_t>(shape.rows),
                                         std::vector<bool>(static_cast<size_t>(earlier + shape.rows)));
  std::vector<std::vector<std::vector<bool>>> visible(static_cast<size_t>(masks), columns);
  for (auto& mask : visible) {
    for (auto& row : mask) {
      for (size_t j = 0; j < row.size(); ++j) row[j] = pick(rng, 0, 2) == 0;
    }
  }
  for (int64_t i = 0; i < shape.sequences * shape.rows; ++i) {
    const int64_t s = i / shape.rows, row = i % shape.rows;
    const int64_t own = start_of(call, s) - prefix_of(call, s) + row;
    visible[static_cast<size_t>(s / (shape.sequences / masks))][static_cast<size_t>(row)]
           [static_cast<size_t>(own)] = true;
  }
  call.tree_mask = pack_mask(visible);
  return call;
}

// Rows [..., D] as a rounded cache holds them: int8 [..., D + kRowScaleBytes].
inline at::Tensor rounded_rows(const at::Tensor& x) {
  const at::Tensor rows = x.to(at::kFloat);
  const at::Tensor scales = rows.abs().amax(-1, true) / 127.0F;
  const at::Tensor integers = (rows / scales).round().nan_to_num(0.0).to(at::kChar);
  return at::cat({integers, scales.contiguous().view(at::kChar)}, -1);
}

// The call over a rounded cache of the same numbers. Rows that hold none stay NaN.
inline AttendCall on_rounded_cache(AttendCall call) {
  call.cache = rounded_rows(call.cache);
  return call;
}

// What a rounded cache stands for.
inline at::Tensor expanded(const at::Tensor& cache, at::ScalarType dtype) {
  const int64_t head_dim = cache.size(-1) - kRowScaleBytes;
  const at::Tensor scales = cache.narrow(-1, head_dim, kRowScaleBytes).contiguous().view(at::kFloat);
  return (cache.narrow(-1, 0, head_dim).to(at::kFloat) * scales).to(dtype);
}

// Whether a row sees the cache index `column` places behind the prefix.
inline bool sees(const AttendCall& call, int64_t sequence, int64_t row, int64_t column) {
  if (call.tree_mask.numel() == 0) {
    return column <= start_of(call, sequence) - prefix_of(call, sequence) + row;
  }
  const int64_t masks = call.tree_mask.size(0);
  const int64_t mask = sequence / (call.qkv.size(0) / masks);
  const auto word = static_cast<uint64_t>(call.tree_mask[mask][row][column / 64].item<int64_t>());
  return ((word >> (column % 64)) & 1U) != 0;
}

}  // namespace lamplighter::test
