#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/attend/attend.h"
#include "kernels/attend/scratch.h"
#include "kernels/common/kernel_inline.h"

namespace lamplighter {
namespace {

// Kernel of attend.h over V, one of the vector vocabularies of simd_*.h. T = float or uint16_t (bf16).
// How the bits of a row stay its own: the score of one query and key is a sum over the features in one fixed
// order; the maximum is exact in any order; exp is per lane; weights and weighted values are one chain over
// the visible keys in index order, in lanes over the features. How queries and keys are grouped into
// registers changes nothing.

// A group of queries (row, head of the group) that share one pass over keys and values.
template <typename T>
struct Queries {
  const AttendArgs* args;
  const T* keys;  // [max_length, head_dim] of this item
  const T* values;
  int64_t sequence;
  int64_t kv_head;
  int64_t group;    // query heads per kv head
  int64_t length;   // prefix
  int64_t columns;  // cache indices from there on that a mask speaks of
  int64_t first;    // query index: row * group + head of the group
  int64_t count;
  int64_t end;  // keys that any query of the group can see
  AttendScratch scratch;

  T* rotated_query(int64_t i) const { return static_cast<T*>(scratch.queries) + i * args->head_dim; }
  float* scores(int64_t i) const { return scratch.scores + i * scratch.stride; }
  int64_t row(int64_t i) const { return group == 1 ? first + i : (first + i) / group; }
  int64_t head(int64_t i) const { return kv_head * group + (first + i) - row(i) * group; }
  const uint64_t* mask(int64_t i) const {
    const int64_t row_of_mask = sequence / args->sequences_per_mask * args->rows + row(i);
    return reinterpret_cast<const uint64_t*>(args->tree_mask) + row_of_mask * args->mask_words;
  }
  const T* block(int64_t r) const {  // the q, k, v block of row r
    const int64_t width = (args->heads + 2 * args->kv_heads) * args->head_dim;
    return static_cast<const T*>(args->qkv) + (sequence * args->rows + r) * width;
  }
  const float* table(int64_t r) const {
    return args->rotary + args->positions[sequence * args->rows + r] * args->head_dim;
  }
};

inline bool has_bit(const uint64_t* words, int64_t i) {
  return ((words[i / 64] >> (i % 64)) & 1U) != 0;
}

// Keys [0, visible_end) are those that query i can see, but for cleared bits in the mask.
template <typename T>
int64_t visible_end(const Queries<T>& q, int64_t i) {
  if (q.args->tree_mask == nullptr) return q.length + q.row(i) + 1;
  const uint64_t* mask = q.mask(i);
  int64_t end = q.columns;
  while (end > 0 && !has_bit(mask, end - 1)) --end;
  return q.length + end;
}

// Rotary embedding of one head.
template <typename V, typename T>
void rotate(const T* x, const float* table, T* out, int64_t head_dim) {
  int64_t i = 0;
  for (; i + V::kLanes <= head_dim; i += V::kLanes)
    V::store(out + i, V::turn(V::load(x + i), V::load(table + i)));
  if (i < head_dim) {
    const int64_t n = head_dim - i;
    V::store(out + i, V::turn(V::load(x + i, n), V::load(table + i, n)), n);
  }
}

// Rotated queries into scratch.queries, [count][head_dim].
template <typename V, typename T>
void load_queries(const Queries<T>& q) {
  const int64_t size = q.args->head_dim;
  for (int64_t i = 0; i < q.count; ++i) {
    rotate<V>(q.block(q.row(i)) + q.head(i) * size, q.table(q.row(i)), q.rotated_query(i), size);
  }
}

// Scores of N queries against kLanes / N keys. Keys from q.end on repeat the last one; their scores are
// unused.
template <typename V, int N, typename T>
void score_tile(const Queries<T>& q, int64_t query, int64_t key) {
  constexpr int kKeys = V::kLanes / N;
  constexpr int64_t kPerWord = static_cast<int64_t>(sizeof(uint32_t) / sizeof(T));
  const int64_t size = q.args->head_dim;
  const T* keys[kKeys];
#pragma GCC unroll 16
  for (int k = 0; k < kKeys; ++k) keys[k] = q.keys + (key + k < q.end ? key + k : q.end - 1) * size;
  const T* queries = q.rotated_query(query);
  typename V::F products[V::kLanes];  // query-major
#pragma GCC unroll 16
  for (int i = 0; i < V::kLanes; ++i) products[i] = V::zero();
  const auto step = [&](auto load) {
    typename V::W x[N];
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) x[i] = load(queries + i * size);
#pragma GCC unroll 16
    for (int k = 0; k < kKeys; ++k) {
      const typename V::W y = load(keys[k]);
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) products[i * kKeys + k] = V::dot(products[i * kKeys + k], x[i], y, T{});
    }
  };
  int64_t d = 0;
  for (; d + V::kLanes * kPerWord <= size; d += V::kLanes * kPerWord) {
    step([d](const T* p) { return V::load_words(p + d); });
  }
  if (d < size) {
    const int64_t words = (size - d) / kPerWord;
    step([d, words](const T* p) { return V::load_words(p + d, words); });
  }
  float scores[V::kLanes];
  V::store(scores, V::mul(V::sums(products), V::set(q.args->scale)));
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    std::memcpy(q.scores(query + i) + key, scores + i * kKeys, kKeys * sizeof(float));
  }
}

// Bytes [begin, end) from `memory` on come closer while others are worked on. Planes of a cache are short,
// and at the begin of each the processor would wait. What lies behind the cache is no error.
// Inlined, because compilers leave out calls that only fetch.
LAMPLIGHTER_INLINE void fetch(const void* memory, int64_t begin, int64_t end) {
  constexpr int64_t kLine = 64;
  for (int64_t byte = begin; byte < end; byte += kLine)
    __builtin_prefetch(
        reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(memory) + static_cast<uintptr_t>(byte)), 0,
        2);
}

// Scores of the group's queries against all keys they see; also of keys that they do not see.
template <typename V, typename T>
void score(const Queries<T>& q) {
  for (int64_t block = 0; block < q.end; block += V::kLanes) {
    const int64_t end = q.end < block + V::kLanes ? q.end : block + V::kLanes;
    const int64_t bytes = q.args->head_dim * static_cast<int64_t>(sizeof(T));
    fetch(q.values, block * bytes, end * bytes);
    int64_t i = 0;
    if constexpr (V::kQueries >= 4) {
      for (; i + 4 <= q.count; i += 4) {
        for (int64_t key = block; key < end; key += V::kLanes / 4) score_tile<V, 4>(q, i, key);
      }
    }
    for (; i + 2 <= q.count; i += 2) {
      for (int64_t key = block; key < end; key += V::kLanes / 2) score_tile<V, 2>(q, i, key);
    }
    if (i < q.count) score_tile<V, 1>(q, i, block);
  }
}

}  // namespace
}  // namespace lamplighter
