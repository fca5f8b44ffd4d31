#pragma once

#include <cstdint>
#include <vector>

namespace lamplighter::reference {

// Dynamic draft trees of EAGLE-2 (Li et al. 2024): each pass expands the k most probable paths by their k
// most probable tokens; the best nodes of all passes become the tree. Equal scores: the smaller index wins.
// The reference for the operators expand_dynamic and rerank_dynamic.

// One expansion of W frontier nodes. Candidate = slot * k + rank.
struct Expansion {
  std::vector<std::int64_t> tokens;    // [W * k] by falling probability, ties by smaller id
  std::vector<double> scores;          // [W * k] cumulative log p; -inf for probability 0
  std::vector<std::int64_t> frontier;  // [k] best candidates, best first
};

// probabilities: W rows of V; scores [W]: cumulative log p of the frontier. Throws Error(usage) unless
// 1 <= k <= V.
Expansion expand_dynamic(const std::vector<std::vector<double>>& probabilities,
                         const std::vector<double>& scores, std::int64_t k);

struct DynamicTree {
  std::vector<std::int64_t> tokens;      // [n + 1] for n kept nodes; entry 0 (the root) 0
  std::vector<std::int64_t> parents;     // [n + 1], root -1
  std::vector<std::int64_t> depths;      // [n + 1]
  std::vector<std::uint64_t> ancestors;  // [n + 1] bit j of entry n: j is n or an ancestor of n
  std::vector<std::int64_t> pool_index;  // [n]
};

// Keeps the `nodes` best of the pool, in pool order; fewer when fewer have a score above -inf. The pool is
// all candidates in order: k of the root, then k * k of every further pass. frontiers [passes][k]: what each
// of these passes expanded, as candidate index of the pass before. Throws Error(usage) when sizes do not fit
// or nodes is not 0 .. min(63, pool).
DynamicTree rerank_dynamic(const std::vector<std::int64_t>& tokens, const std::vector<double>& scores,
                           const std::vector<std::vector<std::int64_t>>& frontiers, std::int64_t k,
                           std::int64_t nodes);

}  // namespace lamplighter::reference
