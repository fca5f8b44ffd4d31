#pragma once

#include "kernels/verify/neighbours.h"

// Chains of tokens that are right on their own: temperature 0, and typical acceptance. official_pac: pac.h.
namespace lamplighter::verification {

template <class Executor>
LAMPLIGHTER_INLINE int most_probable(Executor& executor, const float* values, int n) {
  return executor.argmax(n, [=](int i) { return values[i]; });
}

// Whether `child` holds the argmax of g_A; best: that of g. depth: of the child.
template <class Executor>
LAMPLIGHTER_INLINE bool is_right(Executor& executor, const Cycle& cycle, const Row& g, int best, int child,
                                 int depth) {
  const int x = cycle.token(child);
  if (x < 0 || x == best) return x >= 0;
  const Neighbourhood near = borrow(executor, cycle, g, x, depth);
  const double q = mass(g.at(x)) + near.lent;
  const double top = mass(g.at(best));
  if (q != top || is_official(cycle.args.residual)) return q > top || (q == top && x < best);
  // As probable as the best ones: none that stays in g_A may come first.
  const int64_t first = cycle.args.first_image_id;
  const int ahead = executor.reduce(
      x, 0,
      [&](int i) {
        int stays = g.values[i] == g.values[best] ? 1 : 0;
        for (int j = 0; stays != 0 && j < near.taken; ++j) stays = near.codes[j] + first == i ? 0 : 1;
        return stays;
      },
      Sum());
  return ahead == 0;
}

// Whether a comes before b, which lies as deep, in depth-first order.
LAMPLIGHTER_INLINE bool comes_first(const Cycle& cycle, int a, int b) {
  while (cycle.parent(a) != cycle.parent(b)) {
    a = cycle.parent(a);
    b = cycle.parent(b);
  }
  return a < b;
}

// The token behind a chain comes from the target.
struct FromTarget {
  template <class Executor>
  LAMPLIGHTER_INLINE Outcome outcome(Executor&, const Cycle&, const Row& target, int node, int) const {
    return {node, 0, target};
  }
};

// Temperature 0: the most probable token is right.
struct MostProbable : FromTarget {
  int best;

  template <class Executor>
  LAMPLIGHTER_INLINE void look_at(Executor& executor, const Cycle& cycle, const Row& target, int) {
    best = most_probable(executor, target.values, cycle.vocabulary);
  }

  // The weight of a child at `depth` among chains of one length, 0 where it is not right.
  template <class Executor>
  LAMPLIGHTER_INLINE double weigh(Executor& executor, const Cycle& cycle, const Row& target, int child,
                                  int depth) const {
    return is_right(executor, cycle, target, best, child, depth) ? 1.0 : 0.0;
  }
};

// Typical acceptance: a token is right where it is probable enough for the entropy of its row.
struct TypicalEnough : FromTarget {
  double entropy;

  template <class Executor>
  LAMPLIGHTER_INLINE void look_at(Executor& executor, const Cycle& cycle, const Row& target, int) {
    // Halves stay below 8, where sums of masses are exact.
    entropy = 2 * executor.reduce(
                      cycle.vocabulary, 0.0,
                      [&](int i) {
                        const double p = target.at(i);
                        return p > 0.0 ? mass(-0.5 * p * natural_log(p + 1e-5)) : 0.0;
                      },
                      Sum());
  }

  template <class Executor>
  LAMPLIGHTER_INLINE double weigh(Executor&, const Cycle& cycle, const Row& target, int child, int) const {
    const int x = cycle.token(child);
    const double p = x < 0 ? 0.0 : target.at(x);
    const auto epsilon = static_cast<double>(cycle.args.numbers.epsilon);
    const auto alpha = static_cast<double>(cycle.args.numbers.alpha);
    // p > alpha exp(-entropy) without the exponential.
    const bool enough = p > epsilon || !(alpha > 0.0) || natural_log(p / alpha) > -entropy;
    return p > 0.0 && enough ? p : 0.0;
  }
};

// The longest chain of right nodes; among equals that of the largest product of weights, then the first in
// depth-first order.
template <class Right, class Executor>
LAMPLIGHTER_INLINE Outcome walk_longest(Executor& executor, const Cycle& cycle, Right verify) {
  double weights[kVerifyNodes];  // of the chains to right nodes
  uint8_t depths[kVerifyNodes];
  uint64_t right = 1;  // the root
  int deepest = 0;
  depths[0] = 0;
  weights[0] = 1.0;
  for (int node = 0; node < cycle.nodes; ++node) {
    if ((right >> node & 1U) == 0) continue;
    const int depth = depths[node];
    const bool level = depth == depths[deepest] && node != deepest;
    const double ahead = level ? weights[node] - weights[deepest] : 0.0;
    if (depth > depths[deepest] || ahead > 0.0 ||
        (level && ahead == 0.0 && comes_first(cycle, node, deepest))) {
      deepest = node;
    }
    int child = cycle.first_child(executor, node, depth);
    if (child < 0) continue;
    const Row target = cycle.target_row(executor, node);
    if (target.bad()) continue;
    verify.look_at(executor, cycle, target, node);
    for (; child >= 0; child = cycle.next_child(executor, node, child)) {
      const double weight = verify.weigh(executor, cycle, target, child, depth + 1);
      if (!(weight > 0.0)) continue;
      right |= uint64_t{1} << child;
      depths[child] = static_cast<uint8_t>(depth + 1);
      weights[child] = weights[node] * weight;
    }
  }
  const Row target = cycle.target_row(executor, deepest);
  if (target.bad()) return {deepest, kVerifyBadTarget, target};
  return verify.outcome(executor, cycle, target, deepest, depths[deepest]);
}

}  // namespace lamplighter::verification
