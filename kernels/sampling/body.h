#pragma once

#include "kernels/common/executor.h"
#include "kernels/common/numbers.h"
#include "kernels/sampling/distribution_body.h"
#include "kernels/sampling/sampling.h"

// The sampling operators for one row, written once for every executor; meanings in
// kernels/sampling/sampling.h.
namespace lamplighter::sampling {

constexpr float kSmallestTemperature = 1e-5F;

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

// A probability as a multiple of 2^-50: sums below 8 of such numbers are exact in double precision, so a mass
// does not depend on the order of summation, which differs between executors.
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
  const int place = static_cast<int>(share * kSample);
  const int margin = 2 + static_cast<int>(3.0F * __builtin_sqrtf(kSample * share * (1.0F - share)));
  const float largest = executor.reduce(n, -kInfinity, value, Largest());
  executor.for_each(kSample, [=](int i) { sample[i] = value(i * stride); });
  executor.for_each(2, [=](int i) { bounds[i] = i == 0 ? largest : -kInfinity; });
  executor.for_each(kSample, [=](int i) {
    int larger = 0;
    for (int j = 0; j < kSample; ++j) {
      larger += static_cast<int>((sample[j] > sample[i]) | ((sample[j] == sample[i]) & (j < i)));
    }
    if (larger == place - margin) bounds[0] = sample[i];
    if (larger == place + margin) bounds[1] = sample[i];
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

// The same for the many threads of a block: counts the values by their distance to the largest one, 128
// distances to an octave. Neighbours differ by less than a hundredth, so that few threads count in one cell.
template <class Executor, class Value, class Index>
LAMPLIGHTER_INLINE Narrowed narrow_by_distance(Executor& executor, int n, Value value, int k, Index* list) {
  constexpr int kNearest = (127 - 8) * 128;  // 2^-8; the farthest are 2^8 and more
  uint32_t* cells = executor.template cells<uint32_t>();
  const float largest = executor.reduce(n, -kInfinity, value, Largest());
  const auto cell = [=](int i) {
    const int distance = static_cast<int>(float_bits(largest - value(i)) >> 16) - kNearest;
    return distance < 0 ? 0 : distance < kExecutorCells ? distance : kExecutorCells - 1;
  };
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

// weights: unnormalised probabilities with the sum `total`, 0 for tokens removed before.
template <class Executor>
LAMPLIGHTER_INLINE Cut cut_top_p(Executor& executor, const float* z, const float* weights, int n,
                                 float largest, double total, float top_p, FilterOrder order) {
  const bool falling = order == FilterOrder::kAr;
  const double scale = 1.0 / total;
  const double p = top_p > 0.0F ? static_cast<double>(top_p) : 0.0;
  const double limit = falling ? p : 1.0 - p;
  const auto weight = [=](int i) { return mass(static_cast<double>(weights[i]) * scale); };
  const Selected<double> end = select<double>(
      executor, n, [=](int i) { return z[i]; }, falling, limit, weight);
  if (!end.found) {
    if (falling) return {-kInfinity, 0, n};
    const int last = executor.reduce(
        n, -1, [=](int i) { return z[i] == largest ? i : -1; }, Largest());
    return {largest, last, last};
  }
  const float value = end.value;
  const float shared = executor.reduce(
      n, 0.0F, [=](int i) { return choose(z[i] == value, weights[i], 0.0F); }, Largest());
  const double each = mass(static_cast<double>(shared) * scale);
  // Of the tokens that share the value, those numbered 0..count (kAr) stay, or 0..count-1 (kEagle) go.
  int count = static_cast<int>((limit - end.before) / each);
  if (end.before + count * each > limit) --count;
  if (end.before + (count + 1) * each <= limit) ++count;
  const int id = executor
                     .template scan<uint32_t>(n, static_cast<uint32_t>(count),
                                              [=](int i) { return static_cast<uint32_t>(z[i] == value); })
                     .index;
  return falling ? Cut{value, 0, id} : Cut{value, id, n};
}

// Value of the k-th largest element, -inf when the filter is off. list: room for n indices.
template <class Executor>
LAMPLIGHTER_INLINE float top_k_floor(Executor& executor, const float* z, int n, int64_t top_k,
                                     ListedIndex* list) {
  if (top_k <= 0 || top_k >= n) return -kInfinity;
  return select_kth(
             executor, n, [=](int i) { return z[i]; }, static_cast<int>(top_k), list)
      .value;
}

// Where both filters together cut.
LAMPLIGHTER_INLINE Cut cut_at_floor(const Cut& cut, float floor, int n) {
  return floor > cut.value ? Cut{floor, 0, n} : cut;
}

// z: guided logits; spare: room for n floats.
template <class Executor>
LAMPLIGHTER_INLINE RowStatistics filter(Executor& executor, const float* z, int n, float largest,
                                        float temperature, int64_t top_k, float top_p, FilterOrder order,
                                        float* spare) {
  const bool ar = order == FilterOrder::kAr;
  const bool greedy = temperature <= (ar ? 0.0F : kSmallestTemperature);
  const bool with_top_p = !greedy && top_p < 1.0F && (ar || top_p >= 1e-8F);
  const float floor =
      greedy ? largest : top_k_floor(executor, z, n, top_k, reinterpret_cast<ListedIndex*>(spare));
  const float softmax_floor = with_top_p && !ar ? -kInfinity : floor;
  const float scale = static_cast<float>(
      1.0 / static_cast<double>(temperature > kSmallestTemperature ? temperature : kSmallestTemperature));
  const auto weight = [=](int i) {
    return choose(z[i] >= softmax_floor, exp_negative((z[i] - largest) * scale), 0.0F);
  };
  Cut cut = {floor, 0, n};
  double total;
  if (with_top_p) {
    total = executor.reduce(
        n, 0.0, [=](int i) { return static_cast<double>(spare[i] = weight(i)); }, Sum());
    cut = cut_at_floor(cut_top_p(executor, z, spare, n, largest, total, top_p, order), floor, n);
    total = executor.reduce(
        n, 0.0, [=](int i) { return static_cast<double>(choose(cut.keeps(z[i], i), spare[i], 0.0F)); },
        Sum());
  } else {
    total = executor.reduce(
        n, 0.0, [=](int i) { return static_cast<double>(weight(i)); }, Sum());
  }
  return {1.0F,
          largest,
          scale,
          static_cast<float>(1.0 / total),
          cut.value,
          static_cast<float>(cut.first),
          static_cast<float>(cut.last)};
}

// memory: 2 * vocabulary floats.
template <class Executor>
LAMPLIGHTER_INLINE void guide_and_filter_row(Executor& executor, const GuideAndFilterArgs& args, int64_t row,
                                             float* memory) {
  const int n = static_cast<int>(args.logits.vocabulary);
  const int64_t image = row / args.logits.rows;
  const float guidance = args.guidance[args.guidance_by_row ? row : image];
  float* z = memory;
  const float largest = with_guided_logits(args.logits, row, guidance, [&](auto logit) {
    return executor.reduce(
        n, -kInfinity, [=](int i) { return z[i] = logit(i); }, Largest());
  });
  RowStatistics statistics = {0.0F, 0.0F, 0.0F, 0.0F, kInfinity, 1.0F, 0.0F};  // nothing stays
  if (largest < kInfinity && largest > -kInfinity) {
    statistics = filter(executor, z, n, largest, args.temperature[image], args.top_k[image],
                        args.top_p[image], args.order, memory + n);
  }
  statistics.guidance = guidance;
  executor.for_each(1, [=](int) { args.out[row] = statistics; });
}

// out[row]: probabilities.
template <class Executor>
LAMPLIGHTER_INLINE void write_probabilities_row(Executor& executor, const DistributionRows& rows, int64_t row,
                                                float* out) {
  read_probabilities(executor, rows, row, out + row * rows.vocabulary);
}

template <class Executor>
LAMPLIGHTER_INLINE int64_t draw_token(Executor& executor, const float* probabilities, int n, float uniform,
                                      float temperature) {
  if (!(temperature > 0.0F)) {
    const int best = executor.argmax(n, [=](int i) { return probabilities[i]; });
    return probabilities[best] > 0.0F ? best : -1;
  }
  constexpr float kLargestUniform = 0x1.fffffep-1F;
  const auto weight = [=](int i) { return mass(static_cast<double>(probabilities[i])); };
  const double total = executor.reduce(n, 0.0, weight, Sum());
  const double limit = static_cast<double>(uniform < kLargestUniform ? uniform : kLargestUniform) * total;
  const int id = executor.scan(n, limit, weight).index;
  return id < n ? id : -1;
}

// memory: vocabulary floats.
template <class Executor>
LAMPLIGHTER_INLINE void draw_row(Executor& executor, const DrawArgs& args, int64_t row, float* memory) {
  const int64_t id = draw_token(executor, read_probabilities(executor, args.rows, row, memory),
                                static_cast<int>(args.rows.vocabulary), args.uniforms[row],
                                args.temperature[row / args.rows.rows]);
  executor.for_each(1, [=](int) { args.out[row] = id; });
}

}  // namespace lamplighter::sampling
