#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/element_type.h"
#include "kernels/common/isa.h"

namespace lamplighter {

// Attention of `rows` new rows (tree nodes) per sequence over a key/value cache.
//   1. q and k of row r are rotated by table row positions[s][r]: features (2i, 2i+1) turn by one angle
//      (Su et al. 2021, interleaved pairs), in fp32, rounded to `type`.
//   2. rotated k and v of row r go to cache index starts[s] + r.
//   3. row r attends over the prefix [0, lengths[s]) and over lengths[s] + j of every column j it sees:
//      out = sum softmax(scale * q.k) v, with k and v as the cache holds them, rounded to `type` at the end.
// Columns are the cache indices from lengths[s] on: rows that earlier calls put there, then the rows of this
// call, so that a tree can grow over several calls; row r is column starts[s] - lengths[s] + r. The operator
// takes both as `lengths` int64 [2, S], or [S] when every tree fits in one call (starts = lengths).
// Query head h reads key/value head h / (heads / kv_heads).
// All tensors are contiguous; q, k, v, cache and out hold `type`. A rounded cache holds rows of
// rounded_cache.h instead: attention is that over a cache of `type` with the numbers that those rows stand
// for.
struct AttendArgs {
  const void* qkv;           // [sequences, rows, (heads + 2 * kv_heads) * head_dim]: q, k, v, head-major
  void* keys;                // this layer's keys [sequences, kv_heads, max_length] rows of cache_row_bytes()
  void* values;              // this layer's values, same shape
  const int64_t* positions;  // [sequences, rows], rows of `rotary`
  const int64_t* lengths;    // [sequences], cache indices that every row sees
  const int64_t* starts;     // [sequences], cache index of row 0, at least lengths
  const int64_t* tree_mask;  // null: row r sees all before it; lengths = starts then. Else [masks, rows,
                             // mask_words]: bit j % 64 of word j / 64 of row r is set when row r sees column
                             // j, its own included; bits past the columns are ignored
  const float* rotary;       // [table_rows, head_dim / 2, 2]: cos, sin
  void* out;                 // [sequences, rows, heads * head_dim]
  int64_t sequences;
  int64_t rows;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_dim;  // even
  int64_t max_length;
  int64_t table_rows;
  int64_t mask_words;          // at least ceil((starts[s] - lengths[s] + rows) / 64)
  int64_t sequences_per_mask;  // sequence s uses mask s / sequences_per_mask
  float scale;
  ElementType type;
  bool rounded_cache;
};

// CPU kernels over the items [begin, end) of sequences * kv_heads; item = sequence * kv_heads + kv head. fp32
// and bf16. Row-invariant: a row's bits depend on its q, its position and the keys and values it sees in
// index order, not on other rows, on where the prefix ends or on the partition of the items. `scratch`:
// attend_scratch_bytes() bytes, 64-byte aligned, private to the calling thread.
size_t attend_scratch_bytes(const AttendArgs& args);
template <Isa isa>
void attend_cpu(const AttendArgs& args, int64_t begin, int64_t end, void* scratch);

// CUDA: queued on `stream` (a cudaStream_t) without reading device memory on the host, in launches that
// depend on shapes alone; fp32, bf16 and fp16. Row-invariant in the same sense, but that of bf16 and fp16
// with head_dim 64 and 128 the cache indices of the keys count, not their order alone, and that calls of up
// to four queries of a key/value head have a kernel of their own. `workspace`: attend_cuda_workspace_bytes()
// bytes of device memory, null when that is 0.
size_t attend_cuda_workspace_bytes(const AttendArgs& args);
void attend_cuda(const AttendArgs& args, void* workspace, void* stream);

}  // namespace lamplighter
