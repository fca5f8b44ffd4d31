#pragma once

#include "base/philox.h"
#include "kernels/sampling/sampling_body.h"
#include "kernels/trees/children.h"

// sample_children for one row, written once for every executor; meanings in kernels/trees/children.h.
namespace lamplighter::children {

// Memory of one row.
struct Scratch {
  double* values;  // [V], of the candidates
  float* keys;     // [V], values rounded
  int* ids;        // [V], tokens with a probability
  int* selected;   // [V], candidates when only the best of `ids` are
};
constexpr int64_t kScratchPerToken = sizeof(double) + sizeof(float) + 2 * sizeof(int);

LAMPLIGHTER_INLINE Scratch scratch_at(void* memory, int64_t vocabulary) {
  double* values = static_cast<double*>(memory);
  float* keys = reinterpret_cast<float*>(values + vocabulary);
  int* ids = reinterpret_cast<int*>(keys + vocabulary);
  return {values, keys, ids, ids + vocabulary};
}

// What decides the order of tokens; the largest is sampled first. > 0 for probabilities > 0.
struct Race {
  uint64_t seed;
  uint32_t step;
  uint32_t node;

  LAMPLIGHTER_INLINE double value(int id, float probability) const {
    constexpr uint32_t kChildren = 2;  // ops::Purpose::children
    const uint32_t word = philox4x32({{step, kChildren, node, static_cast<uint32_t>(id)}},
                                     static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32))
                              .word[0];
    const double survives = (small_integer(~word) + 0.5) * 0x1p-32;  // 1 - (word + 1/2) / 2^32, exactly
    return static_cast<double>(probability) / -natural_log(survives);
  }
};

struct MostProbable {
  LAMPLIGHTER_INLINE double value(int, float probability) const { return static_cast<double>(probability); }
};

// use(order) with the order of a row's tokens.
template <class Use>
LAMPLIGHTER_INLINE void with_order(const SampleChildrenArgs& args, int64_t row, Use use) {
  if (!args.sampled) return use(MostProbable{});
  const int64_t image = row / args.rows.rows;
  use(Race{static_cast<uint64_t>(args.seeds[image]), static_cast<uint32_t>(args.steps[image]),
           static_cast<uint32_t>(args.nodes[row % args.rows.rows])});
}

// A sum of probabilities, exact up to the rounding of single ones to multiples of 2^-70, and so independent
// of the order of addition. Sums below 2^19 over at most 2^18 tokens.
struct Mass {
  double high;  // multiples of 2^-34
  double low;   // multiples of 2^-70

  LAMPLIGHTER_INLINE static double high_part(double probability) {
    constexpr double kGrid = 0x1.8p18;
    return (probability + kGrid) - kGrid;
  }
  LAMPLIGHTER_INLINE static double low_part(double probability) {
    constexpr double kGrid = 0x1.8p-18;
    return ((probability - high_part(probability)) + kGrid) - kGrid;
  }
  LAMPLIGHTER_INLINE void remove(double probability) {
    high -= high_part(probability);
    low -= low_part(probability);
  }
};

template <class Executor>
LAMPLIGHTER_INLINE Mass mass_of(Executor& executor, const float* probabilities, const int* ids, int n) {
  const auto probability = [=](int i) { return static_cast<double>(probabilities[ids[i]]); };
  const double high = executor.reduce(
      n, 0.0, [=](int i) { return Mass::high_part(probability(i)); }, sampling::Sum());
  const double low = executor.reduce(
      n, 0.0, [=](int i) { return Mass::low_part(probability(i)); }, sampling::Sum());
  return {high, low};
}

// Leaves the tokens whose rounded values reach the count-th largest. Returns their number.
template <class Executor, class Order>
LAMPLIGHTER_INLINE int keep_best(Executor& executor, const Order& order, const float* p,
                                 const Scratch& scratch, int n, int count) {
  float* keys = scratch.keys;
  const int* ids = scratch.ids;
  int* selected = scratch.selected;
  executor.for_each(n, [=](int i) { keys[i] = static_cast<float>(order.value(ids[i], p[ids[i]])); });
  const float floor = sampling::select_kth(
                          executor, n, [=](int i) { return keys[i]; }, count, selected)
                          .value;
  const int m = executor.compact(
      n, [=](int i) { return keys[i] >= floor; }, selected);
  executor.for_each(m, [=](int i) { selected[i] = ids[selected[i]]; });
  return m;
}

template <class Executor, class Order>
LAMPLIGHTER_INLINE void sample_row(Executor& executor, const SampleChildrenArgs& args, int64_t row,
                                   const Order& order, const float* p, const Scratch& scratch) {
  constexpr int kFew = 4096;  // comparisons that cost less than a selection
  const int n = static_cast<int>(args.rows.vocabulary);
  const int count = static_cast<int>(args.count);
  const bool sampled = args.sampled, weighed = sampled && args.conditional != nullptr;
  int64_t* tokens = args.tokens + row * args.count;
  float* conditional = args.conditional == nullptr ? nullptr : args.conditional + row * args.count;
  const int* ids = scratch.ids;
  double* values = scratch.values;
  int m = executor.compact(
      n, [=](int i) { return (p[i] > 0.0F) & (p[i] < sampling::kInfinity); }, scratch.ids);
  Mass rest = weighed ? mass_of(executor, p, ids, m) : Mass{0.0, 0.0};
  if (m > count && m > kFew / count) {
    m = keep_best(executor, order, p, scratch, m, count);
    ids = scratch.selected;
  }
  executor.for_each(m, [=](int i) { values[i] = order.value(ids[i], p[ids[i]]); });
  for (int rank = 0; rank < count; ++rank) {
    const bool any = rank < m;
    const int best = any ? executor.argmax(m, [=](int i) { return values[i]; }) : 0;
    const int id = any ? ids[best] : -1;
    const double probability = any ? static_cast<double>(p[id]) : 0.0;
    const double left = rest.high + rest.low;
    const double whole = left > probability ? left : probability;
    executor.for_each(1, [=](int) {
      tokens[rank] = id;
      if (conditional != nullptr)
        conditional[rank] = !any ? 0.0F : sampled ? static_cast<float>(probability / whole) : 1.0F;
      if (any) values[best] = -1.0;
    });
    rest.remove(probability);
  }
}

// `memory`: kScratchPerToken * vocabulary bytes; `room`: vocabulary floats, for rows that are no
// probabilities.
template <class Executor>
LAMPLIGHTER_INLINE void sample_children_row(Executor& executor, const SampleChildrenArgs& args, int64_t row,
                                            void* memory, float* room) {
  const Scratch scratch = scratch_at(memory, args.rows.vocabulary);
  const float* probabilities = sampling::read_probabilities(executor, args.rows, row, room);
  with_order(args, row,
             [&](const auto& order) { sample_row(executor, args, row, order, probabilities, scratch); });
}

}  // namespace lamplighter::children
