#pragma once

#include "kernels/verify/ratio.h"

// What a rejection leaves of the target.
namespace lamplighter::verification {

// The two rows that residuals are written to in turn.
struct Buffers {
  float* next;   // [vocabulary]
  float* other;  // [vocabulary]

  LAMPLIGHTER_INLINE void turn() {
    float* used = next;
    next = other;
    other = used;
  }
};

// to [vocabulary] = (weight * from - draft)+ where the siblings before `child` count as sampled: nothing is
// subtracted there. draft.total: the mass of the others. Returns the mass of `to`.
template <class Executor>
LAMPLIGHTER_INLINE double subtract(Executor& executor, const Cycle& cycle, const Row& from, double weight,
                                   const Row& draft, int child, float* to) {
  const float* a = from.values;
  const float* b = draft.values;
  const double a_scale = from.scale * weight;
  const double b_scale = draft.scale;
  double sum = executor.reduce(
      cycle.vocabulary, 0.0,
      [=](int i) {
        const double r = static_cast<double>(a[i]) * a_scale - static_cast<double>(b[i]) * b_scale;
        to[i] = static_cast<float>(r > 0.0 ? r : 0.0);
        return mass(static_cast<double>(to[i]));
      },
      Sum());
  const int parent = cycle.parent(child);
  uint64_t siblings = cycle.children(executor, parent, parent) & ((uint64_t{1} << child) - 1);
  for (; siblings != 0; siblings &= siblings - 1) {
    const int y = cycle.token(lowest_bit(siblings));
    if (y < 0) continue;
    sum += set_value(executor, to, y, static_cast<float>(static_cast<double>(a[y]) * a_scale));
  }
  return sum;
}

// to [vocabulary] = weight * from. Returns its mass.
template <class Executor>
LAMPLIGHTER_INLINE double copy(Executor& executor, const Cycle& cycle, const Row& from, double weight,
                               float* to) {
  const float* a = from.values;
  const double scale = from.scale * weight;
  return executor.reduce(
      cycle.vocabulary, 0.0,
      [=](int i) {
        to[i] = static_cast<float>(static_cast<double>(a[i]) * scale);
        return mass(static_cast<double>(to[i]));
      },
      Sum());
}

// to = (weight * from - d)+, d being what the token of `child` was sampled from: the draft's rest, or the
// token's indicator when draft.values is null. Returns the mass of `to`.
template <class Executor>
LAMPLIGHTER_INLINE double subtract_proposal(Executor& executor, const Cycle& cycle, const Row& from,
                                            double weight, const Row& draft, int child, float* to) {
  if (draft.values != nullptr) return subtract(executor, cycle, from, weight, draft, child, to);
  const double sum = copy(executor, cycle, from, weight, to);
  return sum + set_value(executor, to, cycle.token(child), 0.0F);
}

// Strikes the neighbours out after `sum` was left in `to`; returns the mass that stays.
template <class Executor>
LAMPLIGHTER_INLINE double strike_neighbours(Executor& executor, const Cycle& cycle, const Row& g,
                                            const Neighbourhood& near, float* to, double sum) {
  const VerifyArgs& args = cycle.args;
  if (near.taken == 0 || args.residual == Residual::optimal) return sum;
  const auto zero = [](int64_t) { return 0.0F; };
  if (args.residual == Residual::paper) {
    return sum + set_neighbours(executor, cycle, near, near.taken, to, zero);
  }
  const int64_t all = args.k < args.neighbour_count ? args.k + 1 : args.neighbour_count;
  if (args.residual == Residual::official_static) {  // struck out in the draft: g stays
    const auto keep = [&](int64_t y) { return static_cast<float>(g.at(y)); };
    return sum + set_neighbours(executor, cycle, near, all, to, keep);
  }
  return sum + set_neighbours(executor, cycle, near, all, to, zero);
}

// to = max(to, share * from), with `sum` in `to` before; returns its mass.
template <class Executor>
LAMPLIGHTER_INLINE double keep_share(Executor& executor, const Cycle& cycle, const Row& from, double share,
                                     float* to, double sum) {
  if (!(share > 0.0)) return sum;
  const float* a = from.values;
  const double scale = from.scale * share;
  return executor.reduce(
      cycle.vocabulary, 0.0,
      [=](int i) {
        const auto kept = static_cast<float>(static_cast<double>(a[i]) * scale);
        to[i] = to[i] > kept ? to[i] : kept;
        return mass(static_cast<double>(to[i]));
      },
      Sum());
}

// Replaces a residual whose mass is rounding: g without the rejected tokens, else the target.
template <class Executor>
LAMPLIGHTER_INLINE Row fallback(Executor& executor, const Cycle& cycle, const Row& target, const Row& g,
                                uint64_t rejected, float* to) {
  double sum = copy(executor, cycle, g, 1.0, to);
  for (int node = 0; node < cycle.nodes; ++node) {
    if ((rejected >> node & 1U) != 0) sum += set_value(executor, to, cycle.token(node), 0.0F);
  }
  return sum >= kSmallestMass ? make_row(to, sum) : target;
}

// What is left of g after `child` with token x was rejected. draft: what is left of the draft, values null
// for deterministic children. rejected: bits of the rejected siblings, `child` included. `to`: a row that g
// does not use.
template <class Executor>
LAMPLIGHTER_INLINE Row residual(Executor& executor, const Cycle& cycle, const Row& target, const Row& g,
                                const Row& draft, int child, const Neighbourhood& near, const Ratio& ratio,
                                uint64_t rejected, float* to) {
  double sum = subtract_proposal(executor, cycle, g, ratio.weight, draft, child, to);
  sum = strike_neighbours(executor, cycle, g, near, to, sum);
  sum = keep_share(executor, cycle, g, ratio.kept, to, sum);
  if (!is_official(cycle.args.residual)) {
    return sum >= kSmallestMass ? make_row(to, sum) : fallback(executor, cycle, target, g, rejected, to);
  }
  if (sum > 0.0) return make_row(to, sum);
  executor.for_each(cycle.vocabulary, [=](int i) { to[i] = 1.0F; });
  return make_row(to, static_cast<double>(cycle.vocabulary));
}

}  // namespace lamplighter::verification
