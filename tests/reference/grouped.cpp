#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/reference/walk.h"

// Groups of tokens that are alike: neighbours in the sorted order of the target.
namespace lamplighter::reference {
namespace {

constexpr std::int64_t kBelow = 7, kAbove = 6;

// The token's place among all by probability, then id: those from 7 below to 6 above; itself alone where
// there are fewer below.
std::vector<std::int64_t> slice_of(const Distribution& g, std::int64_t token) {
  std::vector<std::int64_t> order(g.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return g[at(a)] < g[at(b)]; });
  const auto rank = std::find(order.begin(), order.end(), token) - order.begin();
  if (rank < kBelow) return {token};
  const auto last = std::min<std::ptrdiff_t>(rank + kAbove + 1, static_cast<std::ptrdiff_t>(order.size()));
  return {order.begin() + (rank - kBelow), order.begin() + last};
}

}  // namespace

void set_group(const Walk& walk, const Distribution& g, const Distribution& sampled_from, std::int64_t token,
               Test& test) {
  const std::vector<std::vector<double>>& codebook = walk.options.codebook;
  const std::vector<std::int64_t> slice = slice_of(g, token);
  const auto has_vector = [&](std::int64_t id) {
    const std::int64_t code = id - walk.options.first_image_id;
    return code >= 0 && code < static_cast<std::int64_t>(codebook.size());
  };
  const bool measured = std::all_of(slice.begin(), slice.end(), has_vector);
  test.numerator = test.denominator = 0;
  for (const std::int64_t id : slice) {
    double distance = 0;
    for (std::size_t i = 0; measured && i < codebook[0].size(); ++i) {
      const double difference = codebook[at(id - walk.options.first_image_id)][i] -
                                codebook[at(token - walk.options.first_image_id)][i];
      distance += difference * difference;
    }
    const bool alike = std::abs(g[at(id)] - g[at(token)]) < walk.options.bounds[0] &&
                       (!measured || distance < walk.options.bounds[1]);
    if (!alike && id != token) continue;
    test.numerator += g[at(id)];
    test.denominator += sampled_from[at(id)];
  }
}

}  // namespace lamplighter::reference
