#pragma once

#include "kernels/common/executor.h"
#include "kernels/common/numbers.h"
#include "kernels/sampling/distribution_body.h"
#include "kernels/sampling/sampling_body.h"
#include "kernels/verify/verify.h"

// What the parts of verify_tree share; written once for every executor. All masses are multiples of 2^-50
// (sampling::mass), so that sums, and with them decisions, do not depend on the order of summation.
namespace lamplighter::verification {

using sampling::mass;
using sampling::Sum;

constexpr double kSmallestMass = 1e-6;

// Classic mistakes, planted by tests alone.
struct NoBugs {
  static constexpr bool kResidualIsTarget = false;     // the last token from T, not from (T - D)+
  static constexpr bool kSiblingsIndependent = false;  // every sibling verified on T and D as they were
  static constexpr bool kSampledRuleForDeterministic = false;  // d = e(x) / sum(e) whatever the proposal
};

// The distribution values[i] / total.
struct Row {
  const float* values;  // [vocabulary]; null: none
  double total;         // their mass
  double scale;         // 1 / total; 0: a bad row
  bool given;           // by the target or the draft: nothing was subtracted

  LAMPLIGHTER_INLINE bool bad() const { return scale == 0.0; }
  LAMPLIGHTER_INLINE double at(int64_t i) const { return static_cast<double>(values[i]) * scale; }
};

LAMPLIGHTER_INLINE Row make_row(const float* values, double total, bool given = false) {
  constexpr double kInfinity = __builtin_huge_val();
  return {values, total, total > 0.0 && total < kInfinity ? 1.0 / total : 0.0, given};
}

LAMPLIGHTER_INLINE Row no_row() {
  return {nullptr, 0.0, 0.0, true};
}

// A row where it lies, or computed into `to` [vocabulary].
template <class Executor>
LAMPLIGHTER_INLINE Row read_row(Executor& executor, const DistributionRows& rows, int64_t row, float* to) {
  const int n = static_cast<int>(rows.vocabulary);
  if (rows.statistics == nullptr) {
    const float* values = sampling::probabilities_at(rows, row);
    const double total = executor.reduce(
        n, 0.0, [=](int i) { return mass(static_cast<double>(values[i])); }, Sum());
    return make_row(values, total, true);
  }
  executor.sync();  // all have read what lies there
  const double total = sampling::with_probabilities(rows, row, [&](auto p) {
    return executor.reduce(
        n, 0.0, [=](int i) { return mass(static_cast<double>(to[i] = p(i))); }, Sum());
  });
  return make_row(to, total, true);
}

// values[i] = value by one thread, values [vocabulary]; the change of the row's mass.
template <class Executor>
LAMPLIGHTER_INLINE double set_value(Executor& executor, float* values, int64_t i, float value) {
  return executor.reduce(
      1, 0.0,
      [=](int) {
        const float old = values[i];
        values[i] = value;
        return mass(static_cast<double>(value)) - mass(static_cast<double>(old));
      },
      Sum());
}

// One image's part of the arguments.
struct Cycle {
  const VerifyArgs& args;
  int64_t image;
  float* targets;             // [levels, vocabulary], rows of the target that are in use
  float* drafts;              // [levels, vocabulary]
  const int64_t* tokens;      // [nodes]
  const int64_t* parents;     // [nodes]
  const int64_t* draft_rows;  // [nodes]
  const float* uniforms;      // [uniform_count]
  int nodes;
  int vocabulary;

  LAMPLIGHTER_INLINE Cycle(const VerifyArgs& all, int64_t which, float* reads)
      : args(all),
        image(which),
        targets(reads),
        drafts(targets + (all.target.statistics != nullptr ? all.levels : 0) * all.vocabulary),
        tokens(all.tokens + which * all.nodes),
        parents(all.parents + which * all.parents_stride),
        draft_rows(all.draft_rows + which * all.draft_rows_stride),
        uniforms(all.uniforms + which * all.uniform_count),
        nodes(static_cast<int>(all.nodes)),
        vocabulary(static_cast<int>(all.vocabulary)) {}

  // Bits of the children of `node` behind node `after`, one of its children or itself.
  template <class Executor>
  LAMPLIGHTER_INLINE uint64_t children(Executor& executor, int node, int after) const {
    const int64_t* all = parents;
    return executor.mask(nodes, [=](int i) { return (i > after) & (all[i] == node); });
  }

  // The first child of `node` behind node `after`; -1 when there is none.
  template <class Executor>
  LAMPLIGHTER_INLINE int next_child(Executor& executor, int node, int after) const {
    return lowest_bit(children(executor, node, after));
  }

  // `depth`: of the node. Nodes below args.depth count as absent.
  template <class Executor>
  LAMPLIGHTER_INLINE int first_child(Executor& executor, int node, int depth) const {
    return depth < args.depth ? next_child(executor, node, node) : -1;
  }

  // The child that `node` is known to accept, else 0.
  LAMPLIGHTER_INLINE int verdict(int node) const {
    return args.verdicts != nullptr ? args.verdicts[image * nodes + node] : 0;
  }

  LAMPLIGHTER_INLINE int parent(int node) const { return static_cast<int>(parents[node]); }

  // -1 for padding.
  LAMPLIGHTER_INLINE int token(int node) const {
    const int64_t id = tokens[node];
    return id >= 0 && id < vocabulary ? static_cast<int>(id) : -1;
  }

  // Whether a sibling before `child` has the token x.
  template <class Executor>
  LAMPLIGHTER_INLINE bool taken_before(Executor& executor, int child, int64_t x) const {
    const int above = parent(child);
    const int64_t* all = parents;
    const int64_t* ids = tokens;
    return executor.mask(child, [=](int i) { return (i > above) & (all[i] == above) & (ids[i] == x); }) != 0;
  }

  template <class Executor>
  LAMPLIGHTER_INLINE bool repeated(Executor& executor, int child) const {
    return taken_before(executor, child, tokens[child]);
  }

  LAMPLIGHTER_INLINE double uniform(int i) const {
    constexpr float kLargest = 0x1.fffffep-1F;
    return static_cast<double>(uniforms[i] < kLargest ? uniforms[i] : kLargest);
  }

  // Stands until another row of that level is read, as draft_row().
  template <class Executor>
  LAMPLIGHTER_INLINE Row target_row(Executor& executor, int node, int level = 0) const {
    return read_row(executor, args.target, image * nodes + node, targets + int64_t{level} * vocabulary);
  }

  // The distribution that the children of `node` were sampled from.
  template <class Executor>
  LAMPLIGHTER_INLINE Row draft_row(Executor& executor, int node, int level = 0) const {
    const int64_t row = draft_rows[node];
    if (row < 0 || row >= args.draft.rows) return no_row();
    return read_row(executor, args.draft, image * args.draft.rows + row,
                    drafts + int64_t{level} * vocabulary);
  }
};

// Where a cycle ends and what its last token is sampled from.
struct Outcome {
  int node;
  int64_t status;
  Row final;
};

}  // namespace lamplighter::verification
