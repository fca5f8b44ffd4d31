#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "decode/parts.h"
#include "tests/decode/loop_distribution.h"

// The distribution of images of 2 x 2 codes some of which are given, by teacher forcing.
namespace lamplighter::test {

// No filter: what is given may be anything.
inline SamplingOptions unfiltered(float temperature = 0.8F) {
  SamplingOptions sampling = run_sampling();
  sampling.temperature = temperature;
  sampling.top_k = 5;
  return sampling;
}

// The probability that images of a distribution begin so.
inline double probability_of(const JointDistribution& whole, const Tokens& first, std::size_t count) {
  double sum = 0;
  for (const auto& [tokens, probability] : whole)
    if (std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(count), tokens.begin()))
      sum += probability;
  return sum;
}

// The product over tokens, given or not, of their probability after those in front; `kept`: -1 is not given.
inline double chance(const JointDistribution& whole, const Tokens& tokens,
                     const std::vector<std::int32_t>& kept, bool given) {
  double product = 1;
  const auto first = static_cast<std::size_t>(next_missing(kept, 0, 4));
  for (std::size_t i = given ? first : 0; i < tokens.size(); ++i) {
    const bool is_given = i < kept.size() && kept[i] >= 0;
    if (is_given == given) product *= probability_of(whole, tokens, i + 1) / probability_of(whole, tokens, i);
  }
  return product;
}

// Images with the given tokens, by the probability of every other token after those in front.
inline JointDistribution sequential(const JointDistribution& whole, const std::vector<std::int32_t>& kept) {
  JointDistribution some;
  for (const auto& [tokens, probability] : whole) {
    bool fits = true;
    for (std::size_t i = 0; i < kept.size(); ++i) fits = fits && (kept[i] < 0 || kept[i] == tokens[i]);
    if (fits) some[tokens] = chance(whole, tokens, kept, false);
  }
  return some;
}

}  // namespace lamplighter::test
