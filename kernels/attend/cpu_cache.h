#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/attend/rounded_cache.h"
#include "kernels/attend/scores.h"

// The cache of one item on a CPU: this call's keys and values go in, and all of them are there to be read.
namespace lamplighter {
namespace {

inline float feature_of(float x) {
  return x;
}
inline float feature_of(uint16_t bits) {
  return bfloat16_value(bits);
}

inline void set_feature(float* to, float x) {
  *to = x;
}
inline void set_feature(uint16_t* to, float x) {
  *to = nearest_bfloat16(x);
}

template <typename T>
void round_row(const T* x, int64_t size, char* row) {
  uint32_t largest = 0;
  for (int64_t d = 0; d < size; ++d) {
    const uint32_t bits = magnitude_bits(feature_of(x[d]));
    largest = bits > largest ? bits : largest;
  }
  const float scale = row_scale(largest);
  for (int64_t d = 0; d < size; ++d) row[d] = static_cast<char>(round_feature(feature_of(x[d]), scale));
  std::memcpy(row + size, &scale, sizeof(scale));
}

template <typename T>
void expand_row(const char* row, int64_t size, T* x) {
  float scale;
  std::memcpy(&scale, row + size, sizeof(scale));
#pragma omp simd
  for (int64_t d = 0; d < size; ++d) set_feature(x + d, row_feature(static_cast<int8_t>(row[d]), scale));
}

// A rounded cache is expanded for the call as far as its rows see.
template <typename V, typename T>
void open_rounded(Queries<T>& q, char* keys, char* values) {
  const AttendArgs& args = *q.args;
  const int64_t size = args.head_dim, bytes = cache_row_bytes(args), start = args.starts[q.sequence];
  for (int64_t r = 0; r < args.rows; ++r) {
    const T* k = q.block(r) + (args.heads + q.kv_head) * size;
    T* rotated = q.rotated_query(0);  // queries come later
    rotate<V>(k, q.table(r), rotated, size);
    round_row(rotated, size, keys + (start + r) * bytes);
    round_row(k + args.kv_heads * size, size, values + (start + r) * bytes);
  }
  T* all_keys = static_cast<T*>(q.scratch.keys);
  T* all_values = static_cast<T*>(q.scratch.values);
  for (int64_t j = 0; j < start + args.rows; ++j) {
    expand_row(keys + j * bytes, size, all_keys + j * size);
    expand_row(values + j * bytes, size, all_values + j * size);
  }
  q.keys = all_keys;
  q.values = all_values;
}

// Rotated keys and values of all rows of this call go into the cache of item `item`; sets q.keys and
// q.values.
template <typename V, typename T>
void open_cache(Queries<T>& q, int64_t item) {
  const AttendArgs& args = *q.args;
  const int64_t size = args.head_dim, start = args.starts[q.sequence];
  const int64_t plane = item * args.max_length * cache_row_bytes(args);
  char* key_rows = static_cast<char*>(args.keys) + plane;
  char* value_rows = static_cast<char*>(args.values) + plane;
  if (args.rounded_cache) return open_rounded<V>(q, key_rows, value_rows);
  T* keys = reinterpret_cast<T*>(key_rows);
  T* values = reinterpret_cast<T*>(value_rows);
  for (int64_t r = 0; r < args.rows; ++r) {
    const T* k = q.block(r) + (args.heads + q.kv_head) * size;
    rotate<V>(k, q.table(r), keys + (start + r) * size, size);
    std::memcpy(values + (start + r) * size, k + args.kv_heads * size, static_cast<size_t>(size) * sizeof(T));
  }
  q.keys = keys;
  q.values = values;
}

// What the next item reads first comes closer while the weights of query i are worked out: its keys or, of a
// rounded cache, all of it. i-th of q.count parts.
template <typename T>
LAMPLIGHTER_INLINE void fetch_next(const Queries<T>& q, int64_t item, int64_t i) {
  const AttendArgs& args = *q.args;
  const int64_t bytes = cache_row_bytes(args), plane = (item + 1) * args.max_length * bytes;
  const int64_t begin = q.length * i / q.count, end = q.length * (i + 1) / q.count;
  fetch(args.keys, plane + begin * bytes, plane + end * bytes);
  if (args.rounded_cache) fetch(args.values, plane + begin * bytes, plane + end * bytes);
}

}  // namespace
}  // namespace lamplighter
