#pragma once

#include "kernels/sampling/sampling.h"
#include "kernels/sampling/select.h"

// The sampling operators for one row, written once for every executor; meanings in
// kernels/sampling/sampling.h.
namespace lamplighter::sampling {

constexpr float kSmallestTemperature = 1e-5F;

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

// What the settings of an image ask for.
struct FilterSteps {
  bool greedy;  // the largest values alone stay
  bool top_p;
  float scale;  // 1 / temperature
};

LAMPLIGHTER_INLINE FilterSteps filter_steps(float temperature, float top_p, FilterOrder order) {
  const bool ar = order == FilterOrder::kAr;
  const bool greedy = temperature <= (ar ? 0.0F : kSmallestTemperature);
  const float divisor = temperature > kSmallestTemperature ? temperature : kSmallestTemperature;
  return {greedy, !greedy && top_p < 1.0F && (ar || top_p >= 1e-8F),
          static_cast<float>(1.0 / static_cast<double>(divisor))};
}

// z: guided logits; spare: room for n floats.
template <class Executor>
LAMPLIGHTER_INLINE RowStatistics filter(Executor& executor, const float* z, int n, float largest,
                                        float temperature, int64_t top_k, float top_p, FilterOrder order,
                                        float* spare) {
  const FilterSteps steps = filter_steps(temperature, top_p, order);
  const float scale = steps.scale;
  const float floor =
      steps.greedy ? largest : top_k_floor(executor, z, n, top_k, reinterpret_cast<ListedIndex*>(spare));
  const float softmax_floor = steps.top_p && order != FilterOrder::kAr ? -kInfinity : floor;
  const auto weight = [=](int i) {
    return choose(z[i] >= softmax_floor, exp_negative((z[i] - largest) * scale), 0.0F);
  };
  Cut cut = {floor, 0, n};
  double total;
  if (steps.top_p) {
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

// Of a row where nothing stays.
LAMPLIGHTER_INLINE RowStatistics no_distribution(float guidance) {
  return {guidance, 0.0F, 0.0F, 0.0F, kInfinity, 1.0F, 0.0F};
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
  RowStatistics statistics = no_distribution(guidance);
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
LAMPLIGHTER_INLINE int64_t sample_token(Executor& executor, const float* probabilities, int n, float uniform,
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
LAMPLIGHTER_INLINE void sample_row(Executor& executor, const SampleArgs& args, int64_t row, float* memory) {
  const int64_t id = sample_token(executor, read_probabilities(executor, args.rows, row, memory),
                                  static_cast<int>(args.rows.vocabulary), args.uniforms[row],
                                  args.temperature[row / args.rows.rows]);
  executor.for_each(1, [=](int) { args.out[row] = id; });
}

}  // namespace lamplighter::sampling
