#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/attend.h"
#include "kernels/attend_scratch.h"

namespace lamplighter {
namespace {

// Kernel of attend.h over V, one of the vector vocabularies of simd_*.h. T = float or uint16_t (bf16).
// How the bits of a row stay its own: the score of one query and key is one chain over the features, in a
// lane of its own; the maximum is exact in any order; exp is per lane; weights and weighted values are one
// chain over the visible keys in index order, in lanes over the features. How queries and keys are grouped
// into registers changes neither chain.

// A group of queries (row, head of the group) that share one pass over keys and values.
template <typename T>
struct Queries {
  const AttendArgs* args;
  const T* keys;  // [max_length, head_dim] of this item
  const T* values;
  int64_t sequence;
  int64_t kv_head;
  int64_t length;  // prefix
  int64_t first;   // query index: row * (heads per kv head) + head of the group
  int64_t count;
  int64_t end;  // keys that any query of the group can see
  AttendScratch scratch;

  int64_t group() const { return args->heads / args->kv_heads; }
  int64_t row(int64_t i) const { return (first + i) / group(); }
  int64_t head(int64_t i) const { return kv_head * group() + (first + i) % group(); }
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
  int64_t end = q.args->rows;
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

// Rotated keys and values of all rows of this call into the cache.
template <typename V, typename T>
void append(const Queries<T>& q, T* keys, T* values) {
  const AttendArgs& args = *q.args;
  const int64_t size = args.head_dim;
  for (int64_t r = 0; r < args.rows; ++r) {
    const T* k = q.block(r) + (args.heads + q.kv_head) * size;
    rotate<V>(k, q.table(r), keys + (q.length + r) * size, size);
    std::memcpy(values + (q.length + r) * size, k + args.kv_heads * size,
                static_cast<size_t>(size) * sizeof(T));
  }
}

// The words in which scores are computed: bf16 pairs where V multiplies them, else one float per feature.
template <typename V, typename T>
constexpr bool in_pairs() {
  return V::kPairDot && sizeof(T) == 2;
}

template <typename V, typename T>
int64_t score_words(int64_t head_dim) {
  return in_pairs<V, T>() ? head_dim / 2 : head_dim;
}

// Rotated queries into scratch.queries, [count][head_dim] words.
template <typename V, typename T>
void load_queries(const Queries<T>& q) {
  const int64_t size = q.args->head_dim;
  for (int64_t i = 0; i < q.count; ++i) {
    const T* x = q.block(q.row(i)) + q.head(i) * size;
    float* words = q.scratch.queries + i * size;
    if constexpr (sizeof(T) == 4) {
      rotate<V>(x, q.table(q.row(i)), words, size);
    } else {
      // bf16 into the upper half of the row; widening from the front stays behind what is still to be read.
      T* packed = reinterpret_cast<T*>(words) + (in_pairs<V, T>() ? 0 : size);
      rotate<V>(x, q.table(q.row(i)), packed, size);
      for (int64_t d = 0; !in_pairs<V, T>() && d < size; ++d) {
        const uint32_t bits = static_cast<uint32_t>(packed[d]) << 16;
        std::memcpy(words + d, &bits, sizeof(bits));
      }
    }
  }
}

// One lane per key: keys [begin, begin + kLanes) as words [score words][stride] at `out`. Keys from q.end on
// repeat the last one; their scores are never used.
template <typename V, typename T>
void turn_keys(const Queries<T>& q, int64_t begin, uint32_t* out, int64_t stride) {
  constexpr int64_t kPerWord = static_cast<int64_t>(sizeof(uint32_t) / sizeof(T));
  const int64_t size = q.args->head_dim;
  const int64_t words = size / kPerWord;
  typename V::W r[V::kLanes];
  for (int64_t w = 0; w < words; w += V::kLanes) {
    const int64_t n = words - w < V::kLanes ? words - w : V::kLanes;
    for (int64_t i = 0; i < V::kLanes; ++i) {
      const int64_t key = begin + i < q.end ? begin + i : q.end - 1;
      const T* p = q.keys + key * size + w * kPerWord;
      r[i] = n == V::kLanes ? V::load_words(p) : V::load_words(p, n);
    }
    V::transpose(r);
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (sizeof(T) == 4 || in_pairs<V, T>()) {
        V::store_words(out + (w + i) * stride, r[i]);
      } else {
        V::store(reinterpret_cast<float*>(out + 2 * (w + i) * stride), V::even(r[i]));
        V::store(reinterpret_cast<float*>(out + (2 * (w + i) + 1) * stride), V::odd(r[i]));
      }
    }
  }
}

// Scores of N queries against K vectors of keys.
template <typename V, typename T, int N, int K>
void score_tile(const Queries<T>& q, int64_t query, const uint32_t* keys, int64_t key) {
  const int64_t size = q.args->head_dim;
  const int64_t words = score_words<V, T>(size);
  const float* x = q.scratch.queries + query * size;
  typename V::F sum[N][K];
  for (int i = 0; i < N; ++i) {
    for (int k = 0; k < K; ++k) sum[i][k] = V::zero();
  }
  for (int64_t w = 0; w < words; ++w) {
    typename V::W column[K];
    for (int k = 0; k < K; ++k) column[k] = V::load_words(keys + w * kKeyBlock + k * V::kLanes);
    for (int i = 0; i < N; ++i) {
      uint32_t word;
      std::memcpy(&word, x + i * size + w, sizeof(word));
      const typename V::W same = V::set_word(word);
      for (int k = 0; k < K; ++k) {
        if constexpr (in_pairs<V, T>()) {
          sum[i][k] = V::dot(sum[i][k], same, column[k]);
        } else {
          sum[i][k] = V::fma(V::as_floats(same), V::as_floats(column[k]), sum[i][k]);
        }
      }
    }
  }
  const auto scale = V::set(q.args->scale);
  for (int i = 0; i < N; ++i) {
    float* scores = q.scratch.scores + (query + i) * q.scratch.stride + key;
    for (int k = 0; k < K; ++k) V::store(scores + k * V::kLanes, V::mul(sum[i][k], scale));
  }
}

// Calls f.template run<N>(first) over [0, count) in near-equal steps of at most Most.
template <int Most, typename Step>
void in_even_steps(int64_t count, const Step& step) {
  int64_t steps = (count + Most - 1) / Most;
  for (int64_t i = 0; i < count; --steps) {
    const int64_t n = (count - i + steps - 1) / steps;
    if constexpr (Most >= 4) {
      if (n == 4) step.template run<4>(i);
      if (n == 3) step.template run<3>(i);
    }
    if (n == 2) step.template run<2>(i);
    if (n == 1) step.template run<1>(i);
    i += n;
  }
}

template <typename V, typename T, int K>
struct ScoreStep {
  const Queries<T>& q;
  const uint32_t* keys;
  int64_t key;
  template <int N>
  void run(int64_t query) const {
    score_tile<V, T, N, K>(q, query, keys, key);
  }
};

// Scores of all queries of the group into scratch.scores, up to q.end rounded up to a vector.
template <typename V, typename T>
void score(const Queries<T>& q) {
  uint32_t* turned = q.scratch.keys;
  for (int64_t block = 0; block < q.end; block += kKeyBlock) {
    const int64_t keys = q.end - block < kKeyBlock ? q.end - block : kKeyBlock;
    for (int64_t k = 0; k < keys; k += V::kLanes) turn_keys<V>(q, block + k, turned + k, kKeyBlock);
    int64_t k = 0;
    for (; keys - k > 3 * V::kLanes; k += 4 * V::kLanes) {
      in_even_steps<V::kQueries>(q.count, ScoreStep<V, T, 4>{q, turned + k, block + k});
    }
    for (; keys - k > V::kLanes; k += 2 * V::kLanes) {
      in_even_steps<V::kQueries>(q.count, ScoreStep<V, T, 2>{q, turned + k, block + k});
    }
    for (; keys - k > 0; k += V::kLanes) {
      in_even_steps<V::kQueries>(q.count, ScoreStep<V, T, 1>{q, turned + k, block + k});
    }
  }
}

}  // namespace
}  // namespace lamplighter
