#pragma once

#include <cstdint>

#include "kernels/attend_scores.h"
#include "kernels/simd_exp.h"

namespace lamplighter {
namespace {

// Scores -> exp(score - maximum) over the visible keys of query i, 0 elsewhere up to q.end.
template <typename V, typename T>
void weigh(const Queries<T>& q, int64_t i) {
  float* scores = q.scratch.scores + i * q.scratch.stride;
  const int64_t end = visible_end(q, i);
  if (q.args->tree_mask != nullptr) {
    const uint64_t* mask = q.mask(i);
    for (int64_t j = q.length; j < end; ++j) {
      if (!has_bit(mask, j - q.length)) scores[j] = -__builtin_inff();
    }
  }
  const int64_t padded = (end + V::kLanes - 1) / V::kLanes * V::kLanes;
  for (int64_t j = end; j < padded; ++j) scores[j] = -__builtin_inff();
  const auto hidden = V::set(-__builtin_inff());
  auto most = hidden;
  for (int64_t j = 0; j < padded; j += V::kLanes) most = V::max(most, V::load(scores + j));
  const auto maximum = V::set(V::largest(most));
  for (int64_t j = 0; j < padded; j += V::kLanes) {
    const auto s = V::load(scores + j);
    V::store(scores + j, V::keep_above(vector_exp<V>(V::sub(s, maximum)), s, hidden));
  }
  for (int64_t j = padded; j < q.end; ++j) scores[j] = 0.0F;
}

// Adds key j to N queries: weight sums and N x vectors of weighted values.
template <typename V, typename T, int N, int K>
struct ValueSums {
  static constexpr int kParts = static_cast<int>(sizeof(uint32_t) / sizeof(T));
  typename V::F value[N][K][kParts];
  typename V::F weight[N];

  template <bool kSkip>
  void add(const T* v, int64_t tail, const float* weights, int64_t stride) {
    typename V::F x[K][kParts];
    for (int k = 0; k < K; ++k) {
      const T* p = v + k * V::kLanes * kParts;
      const auto words = tail > 0 ? V::load_words(p, tail) : V::load_words(p);
      if constexpr (kParts == 1) {
        x[k][0] = V::as_floats(words);
      } else {
        x[k][0] = V::even(words);
        x[k][1] = V::odd(words);
      }
    }
    for (int i = 0; i < N; ++i) {
      const float one = weights[i * stride];
      if (kSkip && one == 0.0F) continue;
      const auto w = V::set(one);
      weight[i] = V::add(weight[i], w);
      for (int k = 0; k < K; ++k) {
        for (int part = 0; part < kParts; ++part)
          value[i][k][part] = V::fma(w, x[k][part], value[i][k][part]);
      }
    }
  }
};

// Output of N queries for K vectors of words (tail > 0: K = 1 and only `tail` lanes) from feature d on.
template <typename V, typename T, int K>
struct ValueStep {
  const Queries<T>& q;
  int64_t d;
  int64_t tail;

  template <int N>
  void run(int64_t query) const {
    const AttendArgs& args = *q.args;
    const int64_t size = args.head_dim;
    const int64_t stride = q.scratch.stride;
    const float* weights = q.scratch.scores + query * stride;
    ValueSums<V, T, N, K> sums{};
    // All N see the prefix; of causal rows also what the first of them sees.
    const int64_t common = args.tree_mask == nullptr ? visible_end(q, query) : q.length;
    const int64_t end = args.tree_mask == nullptr ? visible_end(q, query + N - 1) : q.end;
    for (int64_t j = 0; j < common; ++j)
      sums.template add<false>(q.values + j * size + d, tail, weights + j, stride);
    for (int64_t j = common; j < end; ++j)
      sums.template add<true>(q.values + j * size + d, tail, weights + j, stride);
    for (int i = 0; i < N; ++i) {
      T* out = static_cast<T*>(args.out) + (q.sequence * args.rows + q.row(query + i)) * args.heads * size +
               q.head(query + i) * size + d;
      const auto inverse = V::div(V::set(1.0F), sums.weight[i]);
      for (int k = 0; k < K; ++k) write(out + k * V::kLanes * sums.kParts, sums.value[i][k], inverse);
    }
  }

  void write(T* out, const typename V::F* value, typename V::F inverse) const {
    typename V::W words;
    if constexpr (sizeof(T) == 4) {
      words = V::as_words(V::mul(value[0], inverse));
    } else {
      words = V::pairs(V::mul(value[0], inverse), V::mul(value[1], inverse));
    }
    tail > 0 ? V::store_words(out, words, tail) : V::store_words(out, words);
  }
};

template <typename V, typename T>
void sum_values(const Queries<T>& q) {
  constexpr int64_t kVector = V::kLanes * static_cast<int64_t>(sizeof(uint32_t) / sizeof(T));  // in features
  constexpr int kMost =
      sizeof(T) == 4 ? 4 : 2;  // vectors of words that fit in registers for V::kQueries queries
  const int64_t size = q.args->head_dim;
  int64_t d = 0;
  for (; d + kMost * kVector <= size; d += kMost * kVector) {
    in_even_steps<V::kQueries>(q.count, ValueStep<V, T, kMost>{q, d, 0});
  }
  for (; d + kVector <= size; d += kVector) in_even_steps<V::kQueries>(q.count, ValueStep<V, T, 1>{q, d, 0});
  if (d < size) {
    const int64_t words =
        (size - d) * static_cast<int64_t>(sizeof(T)) / static_cast<int64_t>(sizeof(uint32_t));
    in_even_steps<V::kQueries>(q.count, ValueStep<V, T, 1>{q, d, words});
  }
}

template <typename V, typename T>
void attend_item(const AttendArgs& args, int64_t item, void* scratch) {
  Queries<T> q{};
  q.args = &args;
  q.sequence = item / args.kv_heads;
  q.kv_head = item % args.kv_heads;
  q.length = args.lengths[q.sequence];
  q.scratch = split_scratch(args, scratch);
  T* keys = static_cast<T*>(args.keys) + item * args.max_length * args.head_dim;
  T* values = static_cast<T*>(args.values) + item * args.max_length * args.head_dim;
  q.keys = keys;
  q.values = values;
  append<V>(q, keys, values);
  const int64_t queries = args.rows * q.group();
  for (q.first = 0; q.first < queries; q.first += kQueryBlock) {
    q.count = queries - q.first < kQueryBlock ? queries - q.first : kQueryBlock;
    q.end = 0;
    for (int64_t i = 0; i < q.count; ++i) {
      const int64_t end = visible_end(q, i);
      q.end = end > q.end ? end : q.end;
    }
    load_queries<V>(q);
    score<V>(q);
    for (int64_t i = 0; i < q.count; ++i) weigh<V>(q, i);
    sum_values<V>(q);
  }
}

template <typename V>
void attend_items(const AttendArgs& args, int64_t begin, int64_t end, void* scratch) {
  for (int64_t item = begin; item < end; ++item) {
    if (args.type == ElementType::kFloat32) {
      attend_item<V, float>(args, item, scratch);
    } else {
      attend_item<V, uint16_t>(args, item, scratch);
    }
  }
}

}  // namespace
}  // namespace lamplighter
