#pragma once

#include "tests/reference/verify.h"

// What the verifies of this folder share.
namespace lamplighter::reference {

inline std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

struct Walk {
  const ScoredTree& tree;
  const AcceptanceOptions& options;
  const NeighbourTable* table;                      // null when the rule borrows nothing
  std::int64_t vocabulary;                          // V
  std::vector<std::vector<std::int64_t>> children;  // [N] siblings by node index
  std::vector<std::int64_t> depth;                  // [N]

  std::int64_t token(std::int64_t node) const { return tree.tokens[at(node)]; }
  const Distribution& target(std::int64_t node) const { return tree.target[at(node)]; }
  // The row the children of a node were sampled from.
  const Distribution& draft(std::int64_t node) const;
  double uniform(std::int64_t node) const { return tree.uniforms[at(node)]; }
  bool is_padding(std::int64_t token_id) const { return token_id < 0 || token_id >= vocabulary; }
};

double mass(const Distribution& distribution);
bool is_bad(const Distribution& distribution);

// Divides by the mass; false, and nothing done, when the mass is below `least` or 0.
bool normalise(Distribution& distribution, double least);

// (target - draft)+ elementwise.
Distribution excess(const Distribution& target, const Distribution& draft);

Distribution indicator(std::int64_t vocabulary, std::int64_t token);

// The nearest codes of a token as far as options.k and the table reach; none for a token that is no code.
std::vector<std::int64_t> neighbours_of(const Walk& walk, std::int64_t token, std::int64_t count);

// The rule's bound for tokens below the root by `depth`.
double bound_at(const Walk& walk, std::int64_t depth);

// Most mass a token below the root by `depth` may borrow: delta, or (lambda - 1) * g(token); 0 for strict
// rules.
double borrowing_limit(const Walk& walk, double probability, std::int64_t depth);

// The token's own probability and what it borrows (sections 3.2 of LANTERN, 4 of LANTERN++): neighbours in
// order while the sum stays below the limit. cool, lenient: its own, weighted.
struct Numerator {
  double value = 0;
  std::vector<std::int64_t> taken;
};
Numerator numerator_of(const Walk& walk, const Distribution& g, std::int64_t token, std::int64_t depth);

// grouped: the masses of the group of a token in the place of its own.
void set_group(const Walk& walk, const Distribution& g, const Distribution& sampled_from, std::int64_t token,
               Test& test);

// Sets what a walk that ended at path.back() leaves: the next token's distribution and the reason.
void finish(const Walk& walk, Verdict& verdict, Distribution final, Reason reason);

// One verify each; they fill everything of the verdict but `token`.
void verify_recursive(const Walk& walk, Verdict& verdict);
void verify_official(const Walk& walk, Verdict& verdict);
void verify_greedy(const Walk& walk, Verdict& verdict);
void verify_typical(const Walk& walk, Verdict& verdict);
void verify_pac(const Walk& walk, Verdict& verdict);
void verify_traversal(const Walk& walk, Verdict& verdict);
void verify_block(const Walk& walk, Verdict& verdict);

}  // namespace lamplighter::reference
