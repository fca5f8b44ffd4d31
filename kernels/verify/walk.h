#pragma once

#include "kernels/verify/grouped.h"
#include "kernels/verify/residual.h"

// The rules that verify one node after another from the root on: exact, lantern, lantern++, cool, grouped,
// lenient.
namespace lamplighter::verification {

// What the children of a node came to: the accepted one or -1, and then what the last token is sampled from.
struct Verification {
  int accepted;
  int64_t status;
  Row left;
};

template <class Bugs>
LAMPLIGHTER_INLINE bool reads_draft(const VerifyArgs& args) {
  if (is_official(args.residual)) return !is_dynamic(args.residual);
  return args.sampled || Bugs::kSampledRuleForDeterministic;
}

// depth: of the children. tests: uniforms that the official code has used so far.
template <class Bugs, class Executor>
LAMPLIGHTER_INLINE Verification verify_children(Executor& executor, const Cycle& cycle, const Row& target,
                                                int node, int depth, Buffers& buffers, int& tests) {
  const bool official = is_official(cycle.args.residual);
  int child = cycle.first_child(executor, node, depth - 1);
  if (child < 0) return {-1, 0, target};
  Row draft = no_row();
  if (reads_draft<Bugs>(cycle.args)) {
    draft = cycle.draft_row(executor, node);
    if (draft.bad()) return {-1, kVerifyBadDraft, target};
  }
  Row g = target;
  Row left = target;
  uint64_t rejected = 0;
  for (; child >= 0; child = cycle.next_child(executor, node, child)) {
    const int x = cycle.token(child);
    if (x < 0 || cycle.repeated(executor, child)) continue;
    const double u = cycle.uniform(official ? ++tests : child);
    double d = 1.0;
    double sampled_from = 0.0;
    if (draft.values != nullptr) {
      const double p = static_cast<double>(draft.values[x]);
      if (!(p > 0.0) || !(draft.total > kSmallestMass)) continue;
      sampled_from = mass(p);
      d = p * draft.scale;
      if (official && d > 1.0) d = 1.0;
    }
    const Neighbourhood near = borrow(executor, cycle, g, x, depth);
    const Ratio ratio = ratio_of(executor, cycle, g, draft, d, near, child, depth);
    const double tested = u * ratio.draft;
    if (official ? tested <= ratio.target : tested < ratio.target) return {child, 0, target};
    rejected |= uint64_t{1} << child;
    left = residual(executor, cycle, target, g, draft, child, near, ratio, rejected, buffers.next);
    buffers.turn();
    if (!Bugs::kSiblingsIndependent) {
      g = left;
      if (draft.values != nullptr) draft = make_row(draft.values, draft.total - sampled_from);
    }
  }
  return {-1, 0, Bugs::kResidualIsTarget ? target : left};
}

template <class Bugs, class Executor>
LAMPLIGHTER_INLINE Outcome walk(Executor& executor, const Cycle& cycle, Buffers buffers) {
  int node = 0;
  int tests = 0;
  for (int depth = 1;; ++depth) {
    const int known = cycle.verdict(node);
    if (known > 0) {
      node = known;
      continue;
    }
    const Row target = cycle.target_row(executor, node);
    if (target.bad()) return {node, kVerifyBadTarget, target};
    const Verification verified = verify_children<Bugs>(executor, cycle, target, node, depth, buffers, tests);
    if (verified.accepted < 0) return {node, verified.status, verified.left};
    node = verified.accepted;
  }
}

// Whether a node can be verified before it is known that the walk gets there: the rules look at nothing above
// it. The official code uses up uniforms on the way.
LAMPLIGHTER_INLINE bool verifies_alone(const VerifyArgs& args, int64_t image) {
  return args.walk == Walk::nodes && !is_official(args.residual) && args.temperature[image] > 0.0F;
}

// The child that `node` accepts, 0 for none.
template <class Bugs, class Executor>
LAMPLIGHTER_INLINE int verify_alone(Executor& executor, const Cycle& cycle, int node, Buffers buffers) {
  int depth = 0;
  for (int above = node; above > 0; above = cycle.parent(above)) ++depth;
  if (cycle.first_child(executor, node, depth) < 0) return 0;
  const Row target = cycle.target_row(executor, node);
  int tests = 0;
  const int accepted =
      target.bad() ? -1
                   : verify_children<Bugs>(executor, cycle, target, node, depth + 1, buffers, tests).accepted;
  return accepted > 0 ? accepted : 0;
}

}  // namespace lamplighter::verification
