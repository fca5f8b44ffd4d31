#pragma once

#include "kernels/common/executor.h"
#include "kernels/common/numbers.h"
#include "kernels/sampling/distribution_body.h"

// Sums and order statistics of a row, written once for every executor.
namespace lamplighter::sampling {

struct Largest {
  template <class T>
  LAMPLIGHTER_INLINE T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

struct Sum {
  template <class T>
  LAMPLIGHTER_INLINE T operator()(T a, T b) const {
    return a + b;
  }
};

// A probability as a multiple of 2^-50: sums below 8 of these numbers are exact in double precision, so a
// mass does not depend on the order of summation, which differs between executors.
LAMPLIGHTER_INLINE double mass(double probability) {
  constexpr double kGrid = 6.0;  // numbers of [4, 8) are multiples of 2^-50
  return (probability + kGrid) - kGrid;
}

// Bits of a float as an unsigned integer that rises with the value; no NaN, no -0. The sign bit decides
// without a branch whether the others are inverted.
LAMPLIGHTER_INLINE uint32_t sort_key(float value) {
  const uint32_t bits = float_bits(value);
  return bits ^ ((0U - (bits >> 31)) | 0x80000000U);
}

LAMPLIGHTER_INLINE float sorted_value(uint32_t key) {
  return bits_float(key ^ (((key >> 31) - 1U) | 0x80000000U));
}

template <class T>
struct Selected {
  bool found;
  float value;
  T before;  // weight of all values that come strictly before `value`
};

// The first value, in falling or rising order, at which the summed weights exceed `limit`: radix selection
// with digits of 11, 11 and 10 bits.
template <class T, class Executor, class Value, class Weight>
LAMPLIGHTER_INLINE Selected<T> select(Executor& executor, int n, Value value, bool falling, T limit,
                                      Weight weight) {
  T* cells = executor.template cells<T>();
  const uint32_t flip = falling ? 0xFFFFFFFFU : 0;
  uint32_t prefix = 0;  // digits found so far, in place
  uint32_t known = 0;   // mask of those digits
  T before = 0;
  for (int shift = 21; shift >= 0; shift -= shift == 21 ? 11 : 10) {
    const uint32_t mask = shift == 0 ? 1023U : 2047U;
    const int digits = static_cast<int>(mask) + 1;
    executor.for_each(digits, [=](int i) { cells[i] = 0; });
    executor.histogram(
        n, cells,
        [=](int i) {
          const uint32_t key = sort_key(value(i)) ^ flip;
          const uint32_t outside = 0U - static_cast<uint32_t>((key & known) != prefix);
          return static_cast<int>(((key >> shift) & mask) | outside);
        },
        weight);
    const Prefix<T> digit = executor.scan(digits, T(limit - before), [=](int i) { return cells[i]; });
    before += digit.before;
    if (digit.index == digits) return {false, 0.0F, before};
    prefix |= static_cast<uint32_t>(digit.index) << shift;
    known |= mask << shift;
  }
  return {true, sorted_value(prefix ^ flip), before};
}

// A pointer to ints in memory that holds floats at other times.
typedef int __attribute__((may_alias)) ListedIndex;

// Looks for the values of a long row between which its k-th largest very probably lies, by a sample and some
// counting, and lists their indices.
struct Narrowed {
  bool found;   // it does lie there, and the list is short
  int above;    // number of larger values
  int between;  // length of the list
};

template <class Executor, class Value, class Index>
LAMPLIGHTER_INLINE Narrowed narrow_kth(Executor& executor, int n, Value value, int k, Index* list) {
  constexpr int kSample = 64, kHalvings = 4;
  float* sample = executor.template cells<float>();
  float* bounds = sample + kSample;
  const int stride = n / kSample;
  const float share = static_cast<float>(k) / static_cast<float>(n);
  const int rank = static_cast<int>(share * kSample);
  const int margin = 2 + static_cast<int>(3.0F * __builtin_sqrtf(kSample * share * (1.0F - share)));
  const float largest = executor.reduce(n, -kInfinity, value, Largest());
  executor.for_each(kSample, [=](int i) { sample[i] = value(i * stride); });
  executor.for_each(2, [=](int i) { bounds[i] = i == 0 ? largest : -kInfinity; });
  executor.for_each(kSample, [=](int i) {
    int larger = 0;
    for (int j = 0; j < kSample; ++j) {
      larger += static_cast<int>((sample[j] > sample[i]) | ((sample[j] == sample[i]) & (j < i)));
    }
    if (larger == rank - margin) bounds[0] = sample[i];
    if (larger == rank + margin) bounds[1] = sample[i];
  });
  float high = bounds[0], low = bounds[1];
  const auto larger_than = [&](float bound) {
    return executor.reduce(
        n, 0, [=](int i) { return static_cast<int>(value(i) > bound); }, Sum());
  };
  for (int halving = 0; halving < kHalvings && high - low < kInfinity; ++halving) {
    const float middle = low + (high - low) * 0.5F;
    (larger_than(middle) < k ? high : low) = middle;
  }
  const int above = larger_than(high);
  const int between = executor.compact(
      n, [=](int i) { return (value(i) <= high) & (value(i) >= low); }, list);
  return {above < k && above + between >= k && between <= n / 2, above, between};
}

// The cell of a value by its distance to the largest one, 128 distances to an octave: neighbours differ by
// less than a hundredth, so that few threads count in one cell.
LAMPLIGHTER_INLINE int distance_cell(float largest, float value) {
  constexpr int kNearest = (127 - 8) * 128;  // 2^-8; the farthest are 2^8 and more
  const int distance = static_cast<int>(float_bits(largest - value) >> 16) - kNearest;
  return distance < 0 ? 0 : distance < kExecutorCells ? distance : kExecutorCells - 1;
}

// The same for the many threads of a block: counts the values by their distance to the largest one.
template <class Executor, class Value, class Index>
LAMPLIGHTER_INLINE Narrowed narrow_by_distance(Executor& executor, int n, Value value, int k, Index* list) {
  uint32_t* cells = executor.template cells<uint32_t>();
  const float largest = executor.reduce(n, -kInfinity, value, Largest());
  const auto cell = [=](int i) { return distance_cell(largest, value(i)); };
  executor.for_each(kExecutorCells, [=](int i) { cells[i] = 0; });
  executor.histogram(n, cells, cell, [](int) { return 1U; });
  const Prefix<uint32_t> found =
      executor.scan(kExecutorCells, static_cast<uint32_t>(k - 1), [=](int i) { return cells[i]; });
  const int between = executor.compact(
      n, [=](int i) { return cell(i) == found.index; }, list);
  return {true, static_cast<int>(found.before), between};
}

// The first value of a short row, in falling order, with more than `limit` values before it or equal to it.
template <class Executor, class Value>
LAMPLIGHTER_INLINE Selected<uint32_t> select_by_rank(Executor& executor, int n, Value value, uint32_t limit) {
  float* values = executor.template cells<float>();
  float* result = values + n;
  executor.for_each(n, [=](int i) { values[i] = value(i); });
  executor.for_each(n, [=](int i) {
    uint32_t before = 0, through = 0;
    for (int j = 0; j < n; ++j) {
      before += static_cast<uint32_t>(values[j] > values[i]);
      through += static_cast<uint32_t>(values[j] >= values[i]);
    }
    if (before <= limit && through > limit) {  // equal ones write the same
      result[0] = values[i];
      result[1] = static_cast<float>(before);
    }
  });
  const Selected<uint32_t> selected = {true, result[0], static_cast<uint32_t>(result[1])};
  executor.sync();
  return selected;
}

// The k-th largest of n values, 1 <= k <= n, and how many are larger. list: room for n indices.
template <class Executor, class Value, class Index>
LAMPLIGHTER_INLINE Selected<uint32_t> select_kth(Executor& executor, int n, Value value, int k, Index* list) {
  constexpr int kLongRow = 2048, kFew = 256;
  const auto one = [](int) { return 1U; };
  const auto limit = static_cast<uint32_t>(k - 1);
  Narrowed narrowed = {false, 0, 0};
  if constexpr (Executor::kIsBlock) {
    if (n <= kFew) return select_by_rank(executor, n, value, limit);
    narrowed = narrow_by_distance(executor, n, value, k, list);
  } else {
    if (n >= kLongRow) narrowed = narrow_kth(executor, n, value, k, list);
    if (!narrowed.found) return select<uint32_t>(executor, n, value, true, limit, one);
  }
  const auto above = static_cast<uint32_t>(narrowed.above);
  const auto listed = [=](int i) { return value(list[i]); };
  if constexpr (Executor::kIsBlock) {
    if (narrowed.between <= kFew) {
      Selected<uint32_t> result = select_by_rank(executor, narrowed.between, listed, limit - above);
      result.before += above;
      return result;
    }
  }
  Selected<uint32_t> result = select<uint32_t>(executor, narrowed.between, listed, true, limit - above, one);
  result.before += above;
  return result;
}

}  // namespace lamplighter::sampling
