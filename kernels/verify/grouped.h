#pragma once

#include "kernels/verify/verify_cycle.h"

// Tokens that count as one with a drafted token: its neighbours in the order of the target's probabilities.
namespace lamplighter::verification {

constexpr int kGroupBelow = 7;  // less probable tokens that are looked at
constexpr int kGroupAbove = 6;  // more probable ones

struct Group {
  double target;  // mass
  double draft;   // mass
};

// The token next to `at` in the order of probability, then of the id; -1 at the end of the order.
template <bool kAbove, class Executor>
LAMPLIGHTER_INLINE int next_in_order(Executor& executor, const float* values, int n, int at) {
  constexpr float kInfinity = __builtin_huge_valf();
  const float limit = values[at];
  const auto behind = [=](int i) {
    const bool above = values[i] > limit || (values[i] == limit && i > at);
    const bool below = values[i] < limit || (values[i] == limit && i < at);
    return kAbove ? above : below;
  };
  // The nearest value; of equal ones the first above and the last below.
  if (kAbove) {
    const int next = executor.argmax(n, [=](int i) { return behind(i) ? -values[i] : -kInfinity; });
    return behind(next) ? next : -1;
  }
  const int next =
      executor.argmax(n, [=](int i) { return behind(n - 1 - i) ? values[n - 1 - i] : -kInfinity; });
  return behind(n - 1 - next) ? n - 1 - next : -1;
}

LAMPLIGHTER_INLINE double squared_distance(const VerifyArgs& args, int64_t one, int64_t other) {
  const float* a = args.codebook + one * args.code_width;
  const float* b = args.codebook + other * args.code_width;
  double sum = 0.0;
  for (int64_t i = 0; i < args.code_width; ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += product(difference, difference);
  }
  return sum;
}

// The group of the token of `child` under the distribution g; sampled: what it was sampled from, values null
// for its indicator. A token with fewer than kGroupBelow less probable ones stands alone.
template <class Executor>
LAMPLIGHTER_INLINE Group group_of(Executor& executor, const Cycle& cycle, const Row& g,
                                  const Row& sampled_from, int child) {
  const VerifyArgs& args = cycle.args;
  const int x = cycle.token(child);
  const auto mass_of = [](const Row& row, int token) { return mass(row.at(token)); };
  const double own = sampled_from.values != nullptr ? mass_of(sampled_from, x) : 1.0;
  int members[kGroupBelow + kGroupAbove];
  int count = 0;
  for (int at = x; count < kGroupBelow; members[count++] = at) {
    at = next_in_order<false>(executor, g.values, cycle.vocabulary, at);
    if (at < 0) return {mass_of(g, x), own};
  }
  for (int at = x; count < kGroupBelow + kGroupAbove; members[count++] = at) {
    at = next_in_order<true>(executor, g.values, cycle.vocabulary, at);
    if (at < 0) break;
  }
  const auto code_of = [&](int token) {
    const int64_t code = token - args.first_image_id;
    return code >= 0 && code < args.code_rows ? code : -1;
  };
  bool measured = args.codebook != nullptr && code_of(x) >= 0;
  for (int i = 0; i < count; ++i) measured = measured && code_of(members[i]) >= 0;
  Group group = {mass_of(g, x), own};
  for (int i = 0; i < count; ++i) {
    const int y = members[i];
    const double gap = g.at(x) > g.at(y) ? g.at(x) - g.at(y) : g.at(y) - g.at(x);
    if (!(gap < static_cast<double>(args.numbers.group_gap))) continue;
    if (measured &&
        !(squared_distance(args, code_of(x), code_of(y)) < static_cast<double>(args.numbers.group_distance)))
      continue;
    group.target += mass_of(g, y);
    if (sampled_from.values != nullptr && !cycle.taken_before(executor, child, y))
      group.draft += mass_of(sampled_from, y);
  }
  return group;
}

}  // namespace lamplighter::verification
