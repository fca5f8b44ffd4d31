#pragma once

#include "kernels/common/executor.h"
#include "kernels/common/numbers.h"
#include "kernels/sampling/distribution.h"

// Rows of distributions as the kernels read them, written once for every executor.
namespace lamplighter::sampling {

constexpr float kInfinity = __builtin_huge_valf();

// An element that no kernel writes while this one runs: devices may load it before earlier stores.
template <class T>
LAMPLIGHTER_INLINE T constant(const T* at) {
#if defined(__CUDACC__)
  if constexpr (sizeof(T) == 2) {
    return {__ldg(&at->bits)};
  } else {
    return __ldg(at);
  }
#else
  return *at;
#endif
}

// Guided logits of one row, without -0 and with +inf for NaN.
template <class T, bool kGuided>
struct GuidedLogits {
  using Element = T;
  static constexpr bool kPairs = kGuided;

  const T* conditional;
  int64_t stride;  // to the unconditional ones
  float guidance;

  LAMPLIGHTER_INLINE float operator()(int i) const {
    return of(constant(conditional + i), kGuided ? constant(conditional + i + stride) : T{});
  }

  // A token's two logits as one; `other` counts where rows are guided.
  LAMPLIGHTER_INLINE float of(T own, T other) const {
    float value = widen(own);
    if (kGuided) {
      const float unconditional = widen(other);
      const float combined = unconditional + (value - unconditional) * guidance;
      value = choose(value == unconditional, value, combined);
    }
    value += 0.0F;
    return choose(value == value, value, kInfinity);
  }
};

// use(z), z(i) being the guided logits of a row.
template <class Use>
LAMPLIGHTER_INLINE auto with_guided_logits(const DistributionRows& rows, int64_t row, float guidance,
                                           Use use) {
  const int64_t stride = rows.guided ? rows.rows * rows.vocabulary : 0;
  const int64_t first = row * rows.vocabulary + row / rows.rows * stride;
  const bool guided = rows.guided && guidance != 1.0F;
  const auto with_type = [&](auto element) {
    using T = decltype(element);
    const T* logits = static_cast<const T*>(rows.values) + first;
    return guided ? use(GuidedLogits<T, true>{logits, stride, guidance})
                  : use(GuidedLogits<T, false>{logits, stride, guidance});
  };
  if (rows.type == ElementType::kBFloat16) return with_type(BFloat16Bits{});
  if (rows.type == ElementType::kFloat16) return with_type(Float16Bits{});
  return with_type(float{});
}

// A value and ids: where the filters cut the order of tokens.
struct Cut {
  float value;
  int first;  // ids of [first, last] stay among the tokens that hold `value`; all above stay
  int last;

  LAMPLIGHTER_INLINE bool keeps(float z, int id) const {
    return (z > value) | ((z == value) & (id >= first) & (id <= last));
  }
};

template <class Logits>
struct Probability {
  Logits z;
  float largest;
  float scale;
  float norm;
  Cut cut;

  LAMPLIGHTER_INLINE float operator()(int i) const {
    const float value = z(i);
    return choose(cut.keeps(value, i), exp_negative((value - largest) * scale), 0.0F) * norm;
  }
};

// use(p), p(i) being the probabilities that logits and statistics describe.
template <class Use>
LAMPLIGHTER_INLINE auto with_probabilities(const DistributionRows& rows, int64_t row, Use use) {
  const RowStatistics s = rows.statistics[row];
  const Cut cut = {s.floor, static_cast<int>(s.first), static_cast<int>(s.last)};
  return with_guided_logits(rows, row, s.guidance, [&](auto logits) {
    return use(Probability<decltype(logits)>{logits, s.largest, s.scale, s.norm, cut});
  });
}

LAMPLIGHTER_INLINE const float* probabilities_at(const DistributionRows& rows, int64_t row) {
  return static_cast<const float*>(rows.values) + row * rows.vocabulary;
}

// The probabilities of a row: where they lie, or computed into `to`, room for a row.
template <class Executor>
LAMPLIGHTER_INLINE const float* read_probabilities(Executor& executor, const DistributionRows& rows,
                                                   int64_t row, float* to) {
  if (rows.statistics == nullptr) return probabilities_at(rows, row);
  with_probabilities(rows, row, [&](auto p) {
    executor.for_each(static_cast<int>(rows.vocabulary), [=](int i) { to[i] = p(i); });
  });
  return to;
}

}  // namespace lamplighter::sampling
