#pragma once

#include "kernels/verify/verify_cycle.h"

// Neighbours from which a relaxed rule borrows probability, and the mass they lend.
namespace lamplighter::verification {

LAMPLIGHTER_INLINE bool is_lumina(Residual residual) {
  return residual == Residual::official_lumina_static || residual == Residual::official_lumina_dynamic;
}

LAMPLIGHTER_INLINE bool is_dynamic(Residual residual) {
  return residual == Residual::official_dynamic || residual == Residual::official_lumina_dynamic;
}

struct Neighbourhood {
  const int32_t* codes;  // nearest first
  int taken;             // the first ones, inside the limit
  double lent;           // their mass
};

// The token of a neighbour, -1 for entries that name no code.
LAMPLIGHTER_INLINE int64_t neighbour_token(const Cycle& cycle, int32_t code) {
  return code >= 0 && code < cycle.args.codes ? code + cycle.args.first_image_id : -1;
}

LAMPLIGHTER_INLINE double at_depth(const ByDepth& numbers, int depth) {
  return static_cast<double>(numbers.values[(depth < numbers.count ? depth : numbers.count) - 1]);
}

LAMPLIGHTER_INLINE double below(double positive) {
  uint64_t bits;
  __builtin_memcpy(&bits, &positive, sizeof(bits));
  --bits;
  __builtin_memcpy(&positive, &bits, sizeof(bits));
  return positive;
}

// The neighbours of token x that lend it probability under the distribution g; depth: of the drafted node.
template <class Executor>
LAMPLIGHTER_INLINE Neighbourhood borrow(Executor& executor, const Cycle& cycle, const Row& g, int x,
                                        int depth) {
  const VerifyArgs& args = cycle.args;
  const int64_t code = x - args.first_image_id;
  const bool additive = args.rule == Rule::lantern;
  const bool borrows = additive || args.rule == Rule::lantern_plus;
  if (!borrows || args.k <= 0 || code < 0 || code >= args.codes) return {nullptr, 0, 0.0};
  const int32_t* codes = args.neighbours + code * args.neighbour_count;
  const double bound = at_depth(additive ? args.numbers.delta : args.numbers.lambda, depth);
  const double limit = additive ? bound : (bound - 1.0) * g.at(x);
  const bool inclusive = is_official(args.residual);
  if (!(bound > (additive ? 0.0 : 1.0)) || !(inclusive || limit > 0.0)) return {codes, 0, 0.0};
  // sum >= limit ends the search for the papers, sum > limit for the programs.
  const Prefix<double> prefix =
      executor.scan(static_cast<int>(args.k), inclusive ? limit : below(limit), [&](int i) {
        const int64_t y = neighbour_token(cycle, codes[i]);
        return y < 0 ? 0.0 : mass(g.at(y));
      });
  return {codes, prefix.index, prefix.before};
}

// Sets the first `count` neighbours in `values` to value(token); the change of the row's mass.
template <class Executor, class Value>
LAMPLIGHTER_INLINE double set_neighbours(Executor& executor, const Cycle& cycle, const Neighbourhood& near,
                                         int64_t count, float* values, Value value) {
  return executor.reduce(
      static_cast<int>(count), 0.0,
      [&](int i) {
        const int64_t y = neighbour_token(cycle, near.codes[i]);
        if (y < 0) return 0.0;
        const float old = values[y];
        values[y] = value(y);
        return mass(static_cast<double>(values[y])) - mass(static_cast<double>(old));
      },
      Sum());
}

}  // namespace lamplighter::verification
