#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/attend/cpu_cache.h"
#include "kernels/attend/scores.h"
#include "kernels/common/simd_exp.h"

namespace lamplighter {
namespace {

// Calls step.template run<N>(first) over [0, count) in near-equal steps of at most Most.
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

// bf16 weights and values where V multiplies pairs of rows, fp32 weights elsewhere.
template <typename V, typename T>
constexpr bool joins_rows() {
  return V::kJoinsRows && sizeof(T) == 2;
}

// Weights of query i in place of its scores: float [j], or bf16 at [j ^ 1] when rows are joined.
template <typename V, typename T>
auto weights(const Queries<T>& q, int64_t i) {
  if constexpr (joins_rows<V, T>()) {
    return reinterpret_cast<uint16_t*>(q.scores(i));
  } else {
    return q.scores(i);
  }
}

// Scores -> exp(score - maximum) over the visible keys of query i, 0 elsewhere up to q.end.
template <typename V, typename T>
void weigh(const Queries<T>& q, int64_t i) {
  float* scores = q.scores(i);
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
  auto* out = weights<V>(q, i);
  for (int64_t j = 0; j < padded; j += V::kLanes) {
    const auto s = V::load(scores + j);
    const auto w = V::keep_above(vector_exp<V>(V::sub(s, maximum)), s, hidden);
    if constexpr (joins_rows<V, T>()) {
      V::store_swapped(out + j, w);  // stays behind the scores still to be read
    } else {
      V::store(out + j, w);
    }
  }
  for (int64_t j = padded; j < q.end + q.end % 2; ++j) out[j] = 0;
}

// Running sums of N queries over K vectors of words of the values, in fp32.
template <typename V, typename T, int N, int K>
struct ValueSums {
  static constexpr int kParts = static_cast<int>(sizeof(uint32_t) / sizeof(T));
  typename V::F value[N][K][kParts];
  typename V::F weight[N];

  // One key of value row `v`. kSkip: leave out queries that do not see it (weight 0).
  template <bool kSkip, typename Load, typename Weight>
  void add(const T* v, const Load& load, const Weight* weights, int64_t stride) {
    typename V::W x[K][kParts];
#pragma GCC unroll 16
    for (int k = 0; k < K; ++k) {
      const typename V::W words = load(v, k);
      if constexpr (joins_rows<V, T>()) {
        x[k][0] = V::join_low(words, V::set_word(0));
        x[k][1] = V::join_high(words, V::set_word(0));
      } else if constexpr (kParts == 2) {
        x[k][0] = V::as_words(V::even(words));
        x[k][1] = V::as_words(V::odd(words));
      } else {
        x[k][0] = words;
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      const Weight w = weights[i * stride];
      if (kSkip && w == 0) continue;
      if constexpr (joins_rows<V, T>()) {
        add_to(i, x, V::set_word(static_cast<uint32_t>(w) << 16), V::set_word(kOnes), T{});
      } else {
        add_to(i, x, V::as_words(V::set(w)), V::as_words(V::set(1.0F)), 0.0F);
      }
    }
  }

  // Two keys in a row that all N queries see; the bits of two add().
  template <typename Load>
  void add_pair(const T* v, int64_t size, const Load& load, const uint16_t* weights, int64_t stride) {
    typename V::W x[K][kParts];
#pragma GCC unroll 16
    for (int k = 0; k < K; ++k) {
      const typename V::W first = load(v, k);
      const typename V::W second = load(v + size, k);
      x[k][0] = V::join_low(first, second);
      x[k][1] = V::join_high(first, second);
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      uint32_t both;
      std::memcpy(&both, weights + i * stride, sizeof(both));
      add_to(i, x, V::set_word(both), V::set_word(kOnes), T{});
    }
  }

 private:
  static constexpr uint32_t kOnes = 0x3f803f80U;  // a pair of bf16 ones

  template <typename Kind>
  void add_to(int i, const typename V::W (&x)[K][kParts], typename V::W w, typename V::W one, Kind kind) {
    weight[i] = V::dot(weight[i], w, one, kind);
#pragma GCC unroll 16
    for (int k = 0; k < K; ++k) {
#pragma GCC unroll 16
      for (int part = 0; part < kParts; ++part)
        value[i][k][part] = V::dot(value[i][k][part], w, x[k][part], kind);
    }
  }
};

// Output of N queries for K vectors of words (tail > 0: K = 1 and only `tail` lanes) from feature d on.
template <typename V, typename T, int K, bool kTail>
struct ValueStep {
  const Queries<T>& q;
  int64_t d;
  int64_t tail;

  template <int N>
  void run(int64_t query) const {
    const int64_t size = q.args->head_dim;
    const auto* w = weights<V>(q, query);
    const int64_t stride = weights<V>(q, query + 1) - w;
    const int64_t lanes = tail;
    const auto load = [lanes](const T* v, int k) {
      const T* p = v + k * V::kLanes * static_cast<int64_t>(sizeof(uint32_t) / sizeof(T));
      return kTail ? V::load_words(p, lanes) : V::load_words(p);
    };
    ValueSums<V, T, N, K> sums{};
    // All N see the prefix; of causal rows also what the first of them sees.
    const bool causal = q.args->tree_mask == nullptr;
    const int64_t common = causal ? visible_end(q, query) : q.length;
    const int64_t end = causal ? visible_end(q, query + N - 1) : q.end;
    const T* v = q.values + d;
    int64_t j = 0;
    if constexpr (joins_rows<V, T>()) {
      for (; j + 1 < common; j += 2) sums.add_pair(v + j * size, size, load, w + j, stride);
      for (; j < end; ++j) sums.template add<true>(v + j * size, load, w + (j ^ 1), stride);
    } else {
      for (; j < common; ++j) sums.template add<false>(v + j * size, load, w + j, stride);
      for (; j < end; ++j) sums.template add<true>(v + j * size, load, w + j, stride);
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      const auto inverse = V::div(V::set(1.0F), sums.weight[i]);
#pragma GCC unroll 16
      for (int k = 0; k < K; ++k) write(query + i, k, sums.value[i][k], inverse);
    }
  }

  void write(int64_t query, int k, const typename V::F* value, typename V::F inverse) const {
    const AttendArgs& args = *q.args;
    const int64_t row = q.sequence * args.rows + q.row(query);
    T* out = static_cast<T*>(args.out) + (row * args.heads + q.head(query)) * args.head_dim + d +
             k * V::kLanes * static_cast<int64_t>(sizeof(uint32_t) / sizeof(T));
    typename V::W words;
    if constexpr (joins_rows<V, T>()) {
      words = V::unjoin(V::mul(value[0], inverse), V::mul(value[1], inverse));
    } else if constexpr (sizeof(T) == 2) {
      words = V::pairs(V::mul(value[0], inverse), V::mul(value[1], inverse));
    } else {
      words = V::as_words(V::mul(value[0], inverse));
    }
    kTail ? V::store_words(out, words, tail) : V::store_words(out, words);
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
    in_even_steps<V::kQueries>(q.count, ValueStep<V, T, kMost, false>{q, d, 0});
  }
  for (; d + kVector <= size; d += kVector)
    in_even_steps<V::kQueries>(q.count, ValueStep<V, T, 1, false>{q, d, 0});
  if (d < size) {
    const int64_t words =
        (size - d) * static_cast<int64_t>(sizeof(T)) / static_cast<int64_t>(sizeof(uint32_t));
    in_even_steps<V::kQueries>(q.count, ValueStep<V, T, 1, true>{q, d, words});
  }
}

template <typename V, typename T>
void attend_item(const AttendArgs& args, int64_t item, void* scratch) {
  Queries<T> q{};
  q.args = &args;
  q.sequence = item / args.kv_heads;
  q.kv_head = item % args.kv_heads;
  q.group = args.heads / args.kv_heads;
  q.length = args.lengths[q.sequence];
  q.columns = args.starts[q.sequence] - q.length + args.rows;
  q.scratch = split_scratch(args, scratch);
  open_cache<V>(q, item);
  const int64_t queries = args.rows * q.group;
  for (q.first = 0; q.first < queries; q.first += kQueryBlock) {
    q.count = queries - q.first < kQueryBlock ? queries - q.first : kQueryBlock;
    q.end = 0;
    const bool last = q.first + q.count == queries;
    for (int64_t i = 0; i < q.count; ++i) {
      const int64_t end = visible_end(q, i);
      q.end = end > q.end ? end : q.end;
    }
    load_queries<V>(q);
    score<V>(q);
    for (int64_t i = 0; i < q.count; ++i) {
      if (last) fetch_next(q, item, i);
      weigh<V>(q, i);
    }
    sum_values<V>(q);
  }
}

}  // namespace
}  // namespace lamplighter
