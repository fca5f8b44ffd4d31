#pragma once

#include "kernels/judge/neighbours.h"

// Temperature 0: chains of most probable tokens.
namespace lamplighter::judging {

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
  if (q != top || is_published(cycle.args.residual)) return q > top || (q == top && x < best);
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

template <class Executor>
LAMPLIGHTER_INLINE Outcome walk_greedy(Executor& executor, const Cycle& cycle) {
  uint8_t depths[kJudgeNodes];  // of right nodes
  uint64_t right = 1;           // the root
  int deepest = 0;
  depths[0] = 0;
  for (int node = 0; node < cycle.nodes; ++node) {
    if ((right >> node & 1U) == 0) continue;
    const int depth = depths[node];
    if (depth > depths[deepest] ||
        (depth == depths[deepest] && node != deepest && comes_first(cycle, node, deepest))) {
      deepest = node;
    }
    int child = cycle.first_child(executor, node, depth);
    if (child < 0) continue;
    const Row target = cycle.target_row(executor, node);
    if (target.bad()) continue;
    const int best = most_probable(executor, target.values, cycle.vocabulary);
    for (; child >= 0; child = cycle.next_child(executor, node, child)) {
      if (!is_right(executor, cycle, target, best, child, depth + 1)) continue;
      right |= uint64_t{1} << child;
      depths[child] = static_cast<uint8_t>(depth + 1);
    }
  }
  const Row target = cycle.target_row(executor, deepest);
  return {deepest, target.bad() ? kJudgeBadTarget : 0, target};
}

}  // namespace lamplighter::judging
