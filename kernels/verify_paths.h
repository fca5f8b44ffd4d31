#pragma once

#include "kernels/verify_residual.h"

// The rules that judge whole paths: traversal and block verification.
namespace lamplighter::verification {

// One node of a path.
struct Step {
  int node;
  int64_t status;  // why the node cannot have children
  double weight;   // probability of acceptance when the path ends here
  Row target;      // what is left of the target row
  Row draft;       // what is left of the draft row; values null for deterministic children
};

// min(1, weight P(x) / Q(x)) for child with token x.
LAMPLIGHTER_INLINE double child_weight(const Step& step, int x) {
  const double drawn = step.draft.values != nullptr ? step.draft.at(x) : 1.0;
  const double ratio = step.weight * step.target.at(x) / drawn;
  return ratio < 1.0 ? ratio : 1.0;
}

// S / (S + 1 - weight), 0 where S is 0.
LAMPLIGHTER_INLINE double end_weight(double residual, double weight) {
  return residual > 0.0 ? residual / (residual + (1.0 - weight)) : 0.0;
}

// The step for `node`. With `inner`, its draft row is read as well.
template <class Executor>
LAMPLIGHTER_INLINE Step make_step(Executor& executor, const Cycle& cycle, int node, bool inner,
                                  double weight) {
  Step step = {node, 0, weight, cycle.target_row(executor, node), {nullptr, 0.0, 0.0}};
  if (step.target.bad()) {
    step.status = kVerifyBadTarget;
  } else if (inner && cycle.args.sampled) {
    step.draft = cycle.draft_row(executor, node);
    if (step.draft.bad()) step.status = kVerifyBadDraft;
  }
  return step;
}

// Whether token x can have been drawn.
LAMPLIGHTER_INLINE bool can_give(const Row& draft, int x) {
  if (draft.values == nullptr) return x >= 0;
  return x >= 0 && draft.total > kSmallestMass && draft.values[x] > 0.0F;
}

// A path from the root down, the rows left on it, and what is still to be judged.
struct Path {
  Step steps[kVerifyNodes];
  int8_t own[kVerifyNodes];  // the scratch row that a step's target row lies in; -1: the input
  int last;
  uint64_t dead;    // nodes judged or skipped
  uint64_t unused;  // scratch rows
};

LAMPLIGHTER_INLINE int first_alive(const Cycle& cycle, const Path& path, int depth) {
  const int node = path.steps[depth].node;
  int child = cycle.first_child(node, depth);
  while (child >= 0 && (path.dead >> child & 1U) != 0) child = cycle.next_child(node, child);
  return child;
}

// Goes on to the first child alive until there is none.
template <class Executor>
LAMPLIGHTER_INLINE void descend(Executor& executor, const Cycle& cycle, Path& path) {
  while (path.steps[path.last].status == 0) {
    const Step& step = path.steps[path.last];
    const int child = first_alive(cycle, path, path.last);
    if (child < 0) return;
    const int x = cycle.token(child);
    if (!can_give(step.draft, x) || cycle.repeated(child)) {
      path.dead |= uint64_t{1} << child;
      continue;
    }
    const double weight = child_weight(step, x);
    const int depth = ++path.last;
    path.own[depth] = -1;
    path.steps[depth] = make_step(executor, cycle, child, cycle.first_child(child, depth) >= 0, weight);
  }
}

// Takes the last node off the path and what it stood for off its parent's rows.
template <class Executor>
LAMPLIGHTER_INLINE void remove_last(Executor& executor, const Cycle& cycle, Path& path, float* scratch) {
  const int child = path.steps[path.last].node;
  if (path.own[path.last] >= 0) path.unused |= uint64_t{1} << path.own[path.last];
  path.dead |= uint64_t{1} << child;
  Step& step = path.steps[--path.last];
  int row = 0;
  while ((path.unused >> row & 1U) == 0) ++row;
  float* to = scratch + static_cast<int64_t>(row) * cycle.vocabulary;
  const double sum = subtract_proposal(executor, cycle, step.target, step.weight, step.draft, child, to);
  step.weight = end_weight(sum, step.weight);
  if (step.draft.values != nullptr) {
    const double drawn = mass(static_cast<double>(step.draft.values[cycle.token(child)]));
    step.draft = make_row(step.draft.values, step.draft.total - drawn);
  }
  if (!(sum > 0.0)) return;
  step.target = make_row(to, sum);
  int8_t& own = path.own[path.last];
  path.unused &= ~(uint64_t{1} << row);
  if (own >= 0) path.unused |= uint64_t{1} << own;
  own = static_cast<int8_t>(row);
}

// scratch: a row for each depth and one more.
template <class Executor>
LAMPLIGHTER_INLINE Outcome traverse(Executor& executor, const Cycle& cycle, float* scratch) {
  Path path;
  path.last = 0;
  path.dead = 0;
  path.unused = ~uint64_t{0};
  path.own[0] = -1;
  path.steps[0] = make_step(executor, cycle, 0, cycle.first_child(0, 0) >= 0, 1.0);
  for (;;) {
    descend(executor, cycle, path);
    const Step& leaf = path.steps[path.last];
    if (path.last == 0 || cycle.uniform(leaf.node) < leaf.weight)
      return {leaf.node, leaf.status, leaf.target};
    remove_last(executor, cycle, path, scratch);
  }
}

// The longest prefix of the chain of first children that block verification accepts. `to`: a row.
template <class Executor>
LAMPLIGHTER_INLINE Outcome verify_block(Executor& executor, const Cycle& cycle, float* to) {
  Step steps[kVerifyNodes];
  steps[0] = make_step(executor, cycle, 0, cycle.first_child(0, 0) >= 0, 1.0);
  int last = 0;
  while (steps[last].status == 0) {
    const int child = cycle.first_child(steps[last].node, last);
    if (child < 0 || !can_give(steps[last].draft, cycle.token(child))) break;
    const double weight = child_weight(steps[last], cycle.token(child));
    steps[last + 1] = make_step(executor, cycle, child, cycle.first_child(child, last + 1) >= 0, weight);
    ++last;
  }
  const Step& end = steps[last];
  if (last == 0 || cycle.uniform(end.node) < end.weight) return {end.node, end.status, end.target};
  for (int i = last - 1;; --i) {
    const Step& step = steps[i];
    const double sum =
        subtract_proposal(executor, cycle, step.target, step.weight, step.draft, steps[i + 1].node, to);
    if (i > 0 && !(cycle.uniform(step.node) < end_weight(sum, step.weight))) continue;
    return {step.node, 0, sum > 0.0 ? make_row(to, sum) : step.target};
  }
}

}  // namespace lamplighter::verification
