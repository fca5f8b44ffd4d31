#pragma once

#include "kernels/attend/cuda_tile.h"

// Attention on CUDA in fp32 and for head sizes that cuda_mma.h does not take: three launches, and
// tiles of up to 8 queries that each read the keys and values.
namespace lamplighter {
namespace {

constexpr int kRowThreads = 256;  // of append_kernel and combine_kernel

inline size_t aligned(int64_t bytes) {
  return static_cast<size_t>((bytes + 255) / 256 * 256);
}

inline int64_t element_bytes(const AttendArgs& args) {
  return args.type == ElementType::kFloat32 ? 4 : 2;
}

inline Workspace split_workspace(const AttendArgs& args, void* memory, size_t* bytes) {
  Workspace workspace{};
  workspace.splits = static_cast<int>((args.max_length + kKeys - 1) / kKeys);
  const int64_t rows = args.rows < kRowsPerPass ? args.rows : kRowsPerPass;
  const int64_t items = workspace.splits * args.sequences * (rows > 0 ? kRowsPerPass : 0) * args.heads;
  char* next = static_cast<char*>(memory);
  const auto take = [&](int64_t size) {
    char* part = next;
    next += aligned(size);
    return part;
  };
  workspace.queries = take(args.sequences * args.rows * args.heads * args.head_dim * element_bytes(args));
  workspace.sums = reinterpret_cast<float*>(take(items * args.head_dim * int64_t{sizeof(float)}));
  workspace.totals = reinterpret_cast<float*>(take(items * int64_t{sizeof(float)}));
  workspace.maxima = reinterpret_cast<float*>(take(items * int64_t{sizeof(float)}));
  *bytes = static_cast<size_t>(next - static_cast<char*>(memory));
  return workspace;
}

// Rotates q and k, appends k and v to the cache. One block per row of this call, one warp per head.
template <class Cache>
__global__ void __launch_bounds__(kRowThreads)
    append_kernel(AttendArgs args, typename Cache::Element* queries) {
  using T = typename Cache::Element;
  const int64_t sequence = blockIdx.x / args.rows;
  const int64_t row = blockIdx.x % args.rows;
  const int64_t index = args.starts[sequence] + row;
  const bool fits = index >= 0 && index < args.max_length;
  const int64_t keys = args.heads, values = keys + args.kv_heads;  // heads of qkv: q, k, v
  const T* from = static_cast<const T*>(args.qkv) + blockIdx.x * (values + args.kv_heads) * args.head_dim;
  const float* angles = rotary_row(args, sequence, row);
  for (int64_t head = threadIdx.x / 32; head < values + args.kv_heads; head += kRowThreads / 32) {
    WarpPairs<T> pairs{};
    pairs.each(args.head_dim, [&](Rotated<T>& pair, int d) {
      const T* x = from + head * args.head_dim + d;
      pair = {x[0], x[1]};
      if (head < values) pair = rotate(x[0], x[1], angles + d);
    });
    if (head < keys) {
      T* to = queries + (blockIdx.x * args.heads + head) * args.head_dim;
      pairs.each(args.head_dim, [&](const Rotated<T>& pair, int d) {
        to[d] = pair.first;
        to[d + 1] = pair.second;
      });
    } else if (fits) {
      const bool is_key = head < values;
      const int64_t kv_head = head - (is_key ? keys : values);
      Cache(args, is_key ? args.keys : args.values, sequence * args.kv_heads + kv_head).store(index, pairs);
    }
  }
}

// Grid: splits, key/value heads x tiles of queries, sequences.
template <class Cache, int kPack, int kQueries>
__global__ void __launch_bounds__(kKeys) partial_kernel(AttendArgs args, Workspace workspace, Rows rows) {
  alignas(16) __shared__ Tile<kQueries> tile;
  const int64_t queries = rows.count * (args.heads / args.kv_heads);
  const int64_t tiles = (queries + kQueries - 1) / kQueries;
  const int64_t done = blockIdx.y % tiles * kQueries;
  const int64_t item = int64_t{blockIdx.z} * args.kv_heads + blockIdx.y / tiles;
  Split<Cache> split{Cache(args, args.keys, item), Cache(args, args.values, item)};
  split.group = args.heads / args.kv_heads;
  split.kv_head = blockIdx.y / tiles;
  split.sequence = blockIdx.z;
  split.length = prefix_length(args, split.sequence);
  split.begin = int64_t{blockIdx.x} * kKeys;
  split.first = rows.begin * split.group + done;
  split.count = static_cast<int>(queries - done < kQueries ? queries - done : kQueries);
  split.columns = mask_columns(args, split.sequence, split.length);
  const int64_t last = args.tree_mask == nullptr ? split.row(split.count - 1) : split.columns - 1;
  if (split.begin > split.length + last) return;  // no row sees these keys
  load_tile(args, workspace, split, tile);
  score<kPack>(args, split, tile);
  weigh(args, workspace, split, rows, tile);
  sum_values(args, workspace, split, rows, tile);
}

// Joins the splits in order; one thread per output element.
template <class T>
__global__ void __launch_bounds__(kRowThreads)
    combine_kernel(AttendArgs args, Workspace workspace, Rows rows) {
  const int64_t i = int64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  const int64_t d = i % args.head_dim;
  const int64_t head = i / args.head_dim % args.heads;
  const int row = static_cast<int>(i / (args.head_dim * args.heads) % rows.count);
  const int64_t sequence = i / (args.head_dim * args.heads * rows.count);
  if (sequence >= args.sequences) return;
  const int64_t keys = visible_keys(args, sequence, rows.begin + row, prefix_length(args, sequence));
  const int splits = static_cast<int>((keys + kKeys - 1) / kKeys);
  float maximum = minus_infinity();
  for (int split = 0; split < splits; ++split) {
    maximum = fmaxf(maximum, workspace.maxima[workspace.item(args, split, sequence, row, head)]);
  }
  float total = 0.0F;
  float sum = 0.0F;
  for (int split = 0; split < splits; ++split) {
    const int64_t item = workspace.item(args, split, sequence, row, head);
    const float weight = expf(__fsub_rn(workspace.maxima[item], maximum));
    total = __fmaf_rn(workspace.totals[item], weight, total);
    sum = __fmaf_rn(workspace.sums[item * args.head_dim + d], weight, sum);
  }
  T* out = static_cast<T*>(args.out) +
           ((sequence * args.rows + rows.begin + row) * args.heads + head) * args.head_dim;
  out[d] = narrow<T>(__fdiv_rn(sum, total));
}

}  // namespace
}  // namespace lamplighter
