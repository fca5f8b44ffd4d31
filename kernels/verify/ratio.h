#pragma once

#include "kernels/verify/grouped.h"
#include "kernels/verify/neighbours.h"

// The test of a drafted token by the rules that go from node to node: what sets a rule apart from exact.
namespace lamplighter::verification {

// A token is accepted iff u * draft < target. A rejection leaves (weight * g - d)+, at least kept * g, of the
// target's distribution g, where d is the draft's.
struct Ratio {
  double target;
  double draft;
  double weight = 1.0;
  double kept = 0.0;
};

LAMPLIGHTER_INLINE bool is_syntax(const VerifyArgs& args, int64_t id) {
  for (int64_t i = 0; i < args.syntax_count; ++i) {
    if (args.syntax_ids[i] == id) return true;
  }
  return false;
}

// What g gives token x together with its neighbours.
LAMPLIGHTER_INLINE double borrowed_probability(const VerifyArgs& args, const Row& g, int x,
                                               const Neighbourhood& near) {
  const int64_t code = x - args.first_image_id;
  if (is_lumina(args.residual) && args.neighbours != nullptr && (code < 0 || code >= args.codes)) {
    return is_syntax(args, x) ? 1.0 : 0.0;
  }
  return g.at(x) + near.lent;
}

// g, draft: what the siblings before `child` left; d: the draft's probability of its token; depth: of
// `child`.
template <class Executor>
LAMPLIGHTER_INLINE Ratio ratio_of(Executor& executor, const Cycle& cycle, const Row& g, const Row& draft,
                                  double d, const Neighbourhood& near, int child, int depth) {
  const VerifyArgs& args = cycle.args;
  const int x = cycle.token(child);
  if (args.rule == Rule::grouped) {
    const Group group = group_of(executor, cycle, g, draft, child);
    return {group.target, group.draft};
  }
  if (args.rule == Rule::cool) {
    const double weight = at_depth(args.numbers.weights, depth);
    return {weight * g.at(x), d, 1.0, 1.0 - weight};
  }
  if (args.rule == Rule::lenient) {  // (g - l d)+ up to a factor
    const double weight = at_depth(args.numbers.weights, depth);
    return {weight * g.at(x), d, weight};
  }
  return {borrowed_probability(args, g, x, near), d};
}

}  // namespace lamplighter::verification
