#pragma once

#include "kernels/verify/residual.h"

// The rule official_pac: what the official program of SJD-PAC does.
namespace lamplighter::verification {

// Every child is tested against what its earlier siblings leave of the target, as if these had been rejected.
// A token that a sibling has already counts as one that could not be sampled: it is right where any of it is
// left.
class OfficialPac {
 public:
  explicit LAMPLIGHTER_INLINE OfficialPac(Buffers buffers) : buffers_(buffers) {}

  template <class Executor>
  LAMPLIGHTER_INLINE void look_at(Executor& executor, const Cycle& cycle, const Row& target, int node) {
    target_ = target;
    left_ = target;
    draft_ = cycle.draft_row(executor, node);
    tested_ = 0;
  }

  template <class Executor>
  LAMPLIGHTER_INLINE double weigh(Executor& executor, const Cycle& cycle, const Row&, int child, int) {
    const int x = cycle.token(child);
    if (x < 0 || draft_.bad() || !(draft_.total > kSmallestMass)) return 0.0;
    const double p = cycle.repeated(executor, child) ? 0.0 : static_cast<double>(draft_.values[x]);
    const Ratio ratio{left_.at(x), p * draft_.scale};
    const bool right = cycle.uniform(child) * ratio.draft < ratio.target;
    tested_ |= uint64_t{1} << child;
    left_ = residual(executor, cycle, target_, left_, draft_, child, {nullptr, 0, 0.0}, ratio, tested_,
                     buffers_.next);
    buffers_.turn();
    draft_ = make_row(draft_.values, draft_.total - mass(p));
    return right ? 1.0 : 0.0;
  }

  // Behind the end of a chain: what all of its children leave, and where none can stand, the row of `draft`
  // that it names, if it does.
  template <class Executor>
  LAMPLIGHTER_INLINE Outcome outcome(Executor& executor, const Cycle& cycle, const Row& target, int node,
                                     int depth) {
    look_at(executor, cycle, target, node);
    const int first = cycle.first_child(executor, node, depth);
    if (first < 0) return {node, 0, draft_.bad() ? target : draft_};
    if (draft_.bad()) return {node, kVerifyBadDraft, target};
    for (int child = first; child >= 0; child = cycle.next_child(executor, node, child))
      weigh(executor, cycle, target, child, depth + 1);
    return {node, 0, left_};
  }

  // The first child of a node where it is right, -1 else. left(): what it leaves, or all children do.
  template <class Executor>
  LAMPLIGHTER_INLINE int kept(Executor& executor, const Cycle& cycle, const Row& target, int node) {
    look_at(executor, cycle, target, node);
    const int first = cycle.next_child(executor, node, node);
    for (int child = first; child >= 0; child = cycle.next_child(executor, node, child)) {
      const bool right = weigh(executor, cycle, target, child, 1) > 0.0;
      if (right && child == first) return child;
    }
    return -1;
  }

  LAMPLIGHTER_INLINE const Row& left() const { return left_; }

 private:
  Buffers buffers_;
  Row target_ = no_row();
  Row left_ = no_row();
  Row draft_ = no_row();  // what is left of it for the next child
  uint64_t tested_ = 0;
};

}  // namespace lamplighter::verification
