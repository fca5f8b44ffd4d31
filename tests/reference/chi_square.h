#pragma once

#include <cmath>

#include "tests/reference/joint_distribution.h"

namespace lamplighter::reference {

// Pearson's chi-square test at 1e-6 (limit after Wilson and Hilferty) of counted sequences against their
// probabilities; sequences that are expected less than ten times count as one, impossible ones never fit.
inline bool fits(const JointDistribution& expected, const JointDistribution& counts) {
  constexpr double kDeviations = 4.753;  // of the normal distribution with 1e-6 above
  double cycles = 0, statistic = 0, rare = 0, rare_count = 0, cells = 0;
  for (const auto& [tokens, count] : counts) {
    cycles += count;
    const auto found = expected.find(tokens);
    if (found == expected.end() || !(found->second > 0)) return false;
  }
  for (const auto& [tokens, probability] : expected) {
    const auto found = counts.find(tokens);
    const double count = found == counts.end() ? 0 : found->second;
    if (probability * cycles < 10) {
      rare += probability * cycles;
      rare_count += count;
    } else {
      statistic += (count - probability * cycles) * (count - probability * cycles) / (probability * cycles);
      ++cells;
    }
  }
  if (rare >= 10) {
    statistic += (rare_count - rare) * (rare_count - rare) / rare;
    ++cells;
  }
  const double freedom = cells - 1;
  const double spread = 2 / (9 * freedom);
  return statistic < freedom * std::pow(1 - spread + kDeviations * std::sqrt(spread), 3);
}

}  // namespace lamplighter::reference
