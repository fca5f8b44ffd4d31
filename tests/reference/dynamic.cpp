#include "tests/reference/dynamic.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "lamplighter/error.h"

namespace lamplighter::reference {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

// Indices [count] of the `count` largest values, largest first, ties by smaller index.
std::vector<std::int64_t> best(const std::vector<double>& values, std::int64_t count) {
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int64_t a, std::int64_t b) {
    return values[at(a)] != values[at(b)] ? values[at(a)] > values[at(b)] : a < b;
  });
  order.resize(at(count));
  return order;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ExitCode::usage, "dynamic tree: " + what);
}

}  // namespace

Expansion expand_dynamic(const std::vector<std::vector<double>>& probabilities,
                         const std::vector<double>& scores, std::int64_t k) {
  require(!probabilities.empty() && probabilities.size() == scores.size(), "expected one score per row");
  Expansion expansion;  // of W slots: tokens and scores [W * k], frontier [k]
  for (std::size_t slot = 0; slot < probabilities.size(); ++slot) {
    const std::vector<double>& row = probabilities[slot];  // [V]
    require(k >= 1 && at(k) <= row.size(),
            "got width " + std::to_string(k) + ", expected 1 to " + std::to_string(row.size()));
    for (const std::int64_t token : best(row, k)) {
      expansion.tokens.push_back(token);
      expansion.scores.push_back(std::log(row[at(token)]) + scores[slot]);
    }
  }
  expansion.frontier = best(expansion.scores, k);
  return expansion;
}

DynamicTree rerank_dynamic(const std::vector<std::int64_t>& tokens, const std::vector<double>& scores,
                           const std::vector<std::vector<std::int64_t>>& frontiers, std::int64_t k,
                           std::int64_t nodes) {
  const auto pool = static_cast<std::int64_t>(tokens.size());  // P = k + passes * k * k candidates
  const auto passes = static_cast<std::int64_t>(frontiers.size());
  require(k >= 1 && pool == k + passes * k * k && scores.size() == tokens.size(),
          "expected a pool of width + passes * width * width");
  require(nodes >= 0 && nodes <= std::min<std::int64_t>(pool, 63),
          "got " + std::to_string(nodes) + " nodes, expected at most 63 out of a pool of " +
              std::to_string(pool));
  // The root alone, [1] each, and the kept candidates [n], n = nodes less the impossible ones.
  DynamicTree tree{{0}, {-1}, {0}, {1}, best(scores, nodes)};
  const auto impossible = [&](std::int64_t index) { return std::isinf(scores[at(index)]); };
  tree.pool_index.erase(std::remove_if(tree.pool_index.begin(), tree.pool_index.end(), impossible),
                        tree.pool_index.end());
  std::sort(tree.pool_index.begin(), tree.pool_index.end());

  std::vector<std::int64_t> node_of(at(pool), -1);  // [P] node of every candidate; -1: left out
  for (const std::int64_t index : tree.pool_index) {
    std::int64_t parent = 0;
    if (index >= k) {
      // Candidates after the first k lie as [passes, slot k, rank k].
      const std::int64_t pass = (index - k) / (k * k);
      const std::int64_t slot = (index - k) % (k * k) / k;
      const std::int64_t before = pass == 0 ? 0 : k + (pass - 1) * k * k;  // where the pass before starts
      parent = node_of[at(before + frontiers[at(pass)][at(slot)])];
      require(parent > 0, "scores rise from parent to child at pool index " + std::to_string(index));
    }
    const auto node = static_cast<std::int64_t>(tree.parents.size());
    node_of[at(index)] = node;
    tree.tokens.push_back(tokens[at(index)]);
    tree.parents.push_back(parent);
    tree.depths.push_back(tree.depths[at(parent)] + 1);
    tree.ancestors.push_back(tree.ancestors[at(parent)] | std::uint64_t{1} << node);
  }
  return tree;
}

}  // namespace lamplighter::reference
