#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/reference/verify.h"

// Turns logits into probabilities in double precision.
namespace lamplighter::reference {

constexpr double kFiltered = -std::numeric_limits<double>::infinity();

// Returns zeros for a row with NaN or +infinity, or without a finite logit.
inline Distribution softmax(const Distribution& logits) {
  Distribution result(logits.size());
  double largest = kFiltered;
  for (const double logit : logits) {
    if (std::isnan(logit) || logit == -kFiltered) return result;
    largest = std::max(largest, logit);
  }
  if (largest == kFiltered) return result;
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) sum += result[i] = std::exp(logits[i] - largest);
  for (double& value : result) value /= sum;
  return result;
}

// Removes the least probable logits, whose mass is at most 1 - top_p; the last one always stays.
inline void filter_top_p(Distribution& logits, double top_p) {
  if (!(top_p >= 1e-8 && top_p < 1)) return;
  const Distribution probabilities = softmax(logits);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] < logits[b]; });
  double sum = 0;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    sum += probabilities[order[i]];
    if (sum <= 1 - top_p) logits[order[i]] = kFiltered;
  }
}

// Removes logits below the k-th largest; ties with it stay.
inline void filter_top_k(Distribution& logits, std::int64_t top_k) {
  if (top_k <= 0 || top_k >= static_cast<std::int64_t>(logits.size())) return;
  Distribution sorted = logits;
  const auto kth = sorted.begin() + (top_k - 1);
  std::nth_element(sorted.begin(), kth, sorted.end(), std::greater<>());
  for (double& logit : logits) {
    if (logit < *kth) logit = kFiltered;
  }
}

struct Filter {
  double temperature = 1;  // 0: no filters, the greedy rule needs the plain softmax
  double top_p = 1;
  std::int64_t top_k = 0;
};

// Temperature, top-p, top-k.
inline Distribution filtered(Distribution logits, const Filter& filter) {
  const bool bad = std::any_of(logits.begin(), logits.end(), [](double v) { return std::isnan(v); });
  if (bad || filter.temperature <= 0) return softmax(logits);
  for (double& logit : logits) logit /= filter.temperature;
  filter_top_p(logits, filter.top_p);
  filter_top_k(logits, filter.top_k);
  return softmax(logits);
}

inline std::vector<Distribution> filtered(std::vector<Distribution> rows, const Filter& filter) {
  for (Distribution& row : rows) row = filtered(std::move(row), filter);
  return rows;
}

}  // namespace lamplighter::reference
