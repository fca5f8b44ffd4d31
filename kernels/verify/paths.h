#pragma once

#include "kernels/verify/residual.h"

// The rules that verify whole paths: traversal and block verification.
namespace lamplighter::verification {

// One node of a path.
struct Step {
  int node;
  int own;         // the scratch row that its target row lies in; -1: the input
  int64_t status;  // why the node cannot have children
  double weight;   // probability of acceptance when the path ends here
  Row target;      // what is left of the target row
  Row draft;       // what is left of the draft row; values null for deterministic children
};

// min(1, weight P(x) / Q(x)) for child with token x.
LAMPLIGHTER_INLINE double child_weight(const Step& step, int x) {
  const double sampled_from = step.draft.values != nullptr ? step.draft.at(x) : 1.0;
  const double ratio = step.weight * step.target.at(x) / sampled_from;
  return ratio < 1.0 ? ratio : 1.0;
}

// S / (S + 1 - weight), 0 where S is 0.
LAMPLIGHTER_INLINE double end_weight(double residual, double weight) {
  return residual > 0.0 ? residual / (residual + (1.0 - weight)) : 0.0;
}

// The step for `node` at `depth`. With `inner`, its draft row is read as well.
template <class Executor>
LAMPLIGHTER_INLINE Step make_step(Executor& executor, const Cycle& cycle, int node, int depth, bool inner,
                                  double weight) {
  Step step = {node, -1, 0, weight, cycle.target_row(executor, node, depth), no_row()};
  if (step.target.bad()) {
    step.status = kVerifyBadTarget;
  } else if (inner && cycle.args.sampled) {
    step.draft = cycle.draft_row(executor, node, depth);
    if (step.draft.bad()) step.status = kVerifyBadDraft;
  }
  return step;
}

// Whether token x can have been sampled.
LAMPLIGHTER_INLINE bool can_give(const Row& draft, int x) {
  if (draft.values == nullptr) return x >= 0;
  return x >= 0 && draft.total > kSmallestMass && draft.values[x] > 0.0F;
}

// The steps of a path, shared by the threads of the executor.
template <class Executor>
class Steps {
 public:
  LAMPLIGHTER_INLINE explicit Steps(Executor& executor)
      : executor_(executor), steps_(reinterpret_cast<Step*>(executor.template cells<double>())) {
    static_assert(sizeof(Step) * kVerifyNodes <= sizeof(double) * kExecutorCells, "a step for each node");
  }

  LAMPLIGHTER_INLINE void set(int depth, const Step& step) {
    executor_.for_each(1, [&](int) { steps_[depth] = step; });
  }

  LAMPLIGHTER_INLINE Step get(int depth) const { return steps_[depth]; }

 private:
  Executor& executor_;
  Step* steps_;  // [kVerifyNodes], one for each depth
};

// A path from the root down, the rows left on it, and what is still to be verified.
struct Path {
  Step last;
  int depth;        // of the last step; the others are kept as Steps
  uint64_t dead;    // bits of nodes verified or skipped
  uint64_t unused;  // bits of scratch rows
};

template <class Executor>
LAMPLIGHTER_INLINE int first_alive(Executor& executor, const Cycle& cycle, const Path& path) {
  const int node = path.last.node;
  int child = cycle.first_child(executor, node, path.depth);
  while (child >= 0 && (path.dead >> child & 1U) != 0) child = cycle.next_child(executor, node, child);
  return child;
}

// Goes on to the first child alive until there is none.
template <class Executor>
LAMPLIGHTER_INLINE void descend(Executor& executor, const Cycle& cycle, Path& path, Steps<Executor>& above) {
  while (path.last.status == 0) {
    const int child = first_alive(executor, cycle, path);
    if (child < 0) return;
    const int x = cycle.token(child);
    if (!can_give(path.last.draft, x) || cycle.repeated(executor, child)) {
      path.dead |= uint64_t{1} << child;
      continue;
    }
    const double weight = child_weight(path.last, x);
    above.set(path.depth, path.last);
    ++path.depth;
    path.last = make_step(executor, cycle, child, path.depth,
                          cycle.first_child(executor, child, path.depth) >= 0, weight);
  }
}

// Takes the last node off the path and what it stood for off its parent's rows. scratch [levels, V].
template <class Executor>
LAMPLIGHTER_INLINE void remove_last(Executor& executor, const Cycle& cycle, Path& path,
                                    const Steps<Executor>& above, float* scratch) {
  const int child = path.last.node;
  if (path.last.own >= 0) path.unused |= uint64_t{1} << path.last.own;
  path.dead |= uint64_t{1} << child;
  Step step = above.get(--path.depth);
  int row = 0;
  while ((path.unused >> row & 1U) == 0) ++row;
  float* to = scratch + static_cast<int64_t>(row) * cycle.vocabulary;
  const double sum = subtract_proposal(executor, cycle, step.target, step.weight, step.draft, child, to);
  step.weight = end_weight(sum, step.weight);
  if (step.draft.values != nullptr) {
    const double sampled_from = mass(static_cast<double>(step.draft.values[cycle.token(child)]));
    step.draft = make_row(step.draft.values, step.draft.total - sampled_from);
  }
  if (sum > 0.0) {
    step.target = make_row(to, sum);
    path.unused &= ~(uint64_t{1} << row);
    if (step.own >= 0) path.unused |= uint64_t{1} << step.own;
    step.own = row;
  }
  path.last = step;
}

// scratch [levels, vocabulary], levels = depth + 1: a row for each step that has lost children.
template <class Executor>
LAMPLIGHTER_INLINE Outcome traverse(Executor& executor, const Cycle& cycle, float* scratch) {
  Steps<Executor> above(executor);
  Path path = {make_step(executor, cycle, 0, 0, cycle.first_child(executor, 0, 0) >= 0, 1.0), 0, 0,
               ~uint64_t{0}};
  for (;;) {
    descend(executor, cycle, path, above);
    const Step& leaf = path.last;
    if (path.depth == 0 || cycle.uniform(leaf.node) < leaf.weight) {
      return {leaf.node, leaf.status, leaf.target};
    }
    remove_last(executor, cycle, path, above, scratch);
  }
}

// The longest prefix of the chain of first children that block verification accepts. `to` [vocabulary].
template <class Executor>
LAMPLIGHTER_INLINE Outcome verify_block(Executor& executor, const Cycle& cycle, float* to) {
  Steps<Executor> above(executor);
  Step last = make_step(executor, cycle, 0, 0, cycle.first_child(executor, 0, 0) >= 0, 1.0);
  int depth = 0;
  while (last.status == 0) {
    const int child = cycle.first_child(executor, last.node, depth);
    if (child < 0 || !can_give(last.draft, cycle.token(child))) break;
    const double weight = child_weight(last, cycle.token(child));
    above.set(depth, last);
    ++depth;
    last = make_step(executor, cycle, child, depth, cycle.first_child(executor, child, depth) >= 0, weight);
  }
  if (depth == 0 || cycle.uniform(last.node) < last.weight) return {last.node, last.status, last.target};
  for (int child = last.node;;) {
    const Step step = above.get(--depth);
    const double sum = subtract_proposal(executor, cycle, step.target, step.weight, step.draft, child, to);
    if (depth == 0 || cycle.uniform(step.node) < end_weight(sum, step.weight)) {
      return {step.node, 0, sum > 0.0 ? make_row(to, sum) : step.target};
    }
    child = step.node;
  }
}

}  // namespace lamplighter::verification
