#pragma once

#include "kernels/verify/greedy.h"
#include "kernels/verify/pac.h"
#include "kernels/verify/paths.h"
#include "kernels/verify/walk.h"

// verify_tree for one image, written once for every executor; meaning in kernels/verify/verify.h.
namespace lamplighter::verification {

template <class Executor>
LAMPLIGHTER_INLINE void write_path(Executor& executor, const Cycle& cycle, int64_t image, int node) {
  const VerifyArgs& args = cycle.args;
  int count = 0;
  for (int above = node; above > 0; above = cycle.parent(above)) ++count;
  executor.for_each(1, [&](int) {
    int64_t* path = args.path + image * (args.depth + 1);
    for (int64_t i = args.depth; i > count; --i) path[i] = -1;
    for (int i = count, above = node; i >= 0; --i, above = cycle.parent(above)) path[i] = above;
    args.count[image] = count;
  });
}

// A token of a row, which goes to `to`, its own place or another. Rows as they were given are not scaled:
// then the operator sample gives the same token.
template <class Executor>
LAMPLIGHTER_INLINE int64_t sample_from(Executor& executor, const Row& row, int n, double uniform, bool greedy,
                                       float* to) {
  const float* values = row.values;
  const double scale = row.given ? 1.0 : row.scale;
  executor.for_each(n, [=](int i) { to[i] = static_cast<float>(static_cast<double>(values[i]) * scale); });
  return sampling::sample_token(executor, to, n, static_cast<float>(uniform), greedy ? 0.0F : 1.0F);
}

// The last token; its distribution goes to `final`.
template <class Executor>
LAMPLIGHTER_INLINE int64_t last_token(Executor& executor, const Cycle& cycle, const Outcome& outcome,
                                      bool greedy, float* final) {
  if ((outcome.status & kVerifyBadTarget) == 0)
    return sample_from(executor, outcome.final, cycle.vocabulary, cycle.uniform(0), greedy, final);
  executor.for_each(cycle.vocabulary, [=](int i) { final[i] = 0.0F; });
  return -1;
}

// The rules that a program holds; with one kind of them it needs fewer registers.
enum class Rules { all, walks, paths };

template <class Bugs, Rules kRules, class Executor>
LAMPLIGHTER_INLINE Outcome outcome_of(Executor& executor, const Cycle& cycle, bool greedy, float* final,
                                      float* residuals) {
  if (greedy) return walk_longest(executor, cycle, MostProbable{});
  if (cycle.args.rule == Rule::typical) return walk_longest(executor, cycle, TypicalEnough{});
  if (cycle.args.rule == Rule::official_pac)
    return walk_longest(executor, cycle, OfficialPac({final, residuals}));
  const bool paths = kRules == Rules::all ? cycle.args.walk == Walk::paths : kRules == Rules::paths;
  if (!paths) return walk<Bugs>(executor, cycle, {final, residuals});
  if (cycle.args.rule == Rule::block) return verify_block(executor, cycle, residuals);
  return traverse(executor, cycle, residuals);
}

// residuals: verify_residual_floats(); reads: verify_read_floats().
template <class Bugs, Rules kRules, class Executor>
LAMPLIGHTER_INLINE void verify_image(Executor& executor, const VerifyArgs& args, int64_t image,
                                     float* residuals, float* reads) {
  const Cycle cycle(args, image, reads);
  float* final = args.final + image * args.vocabulary;
  const bool greedy = !(args.temperature[image] > 0.0F);
  const Outcome outcome = outcome_of<Bugs, kRules>(executor, cycle, greedy, final, residuals);
  write_path(executor, cycle, image, outcome.node);
  const int64_t token = last_token(executor, cycle, outcome, greedy, final);
  executor.for_each(1, [&](int) {
    args.token[image] = token;
    args.status[image] = outcome.status;
  });
}

}  // namespace lamplighter::verification
