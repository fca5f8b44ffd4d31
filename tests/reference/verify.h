#pragma once

#include <cstdint>
#include <vector>

#include "acceptance/neighbours.h"
#include "acceptance/rules.h"

// One cycle of speculative decoding, verified on the host in double precision: what the operator in
// kernels/verify is tested against.
namespace lamplighter::reference {

// Probabilities after temperature, filters and guidance; a row with NaN, an infinity or without any mass is
// bad.
using Distribution = std::vector<double>;

// How siblings were sampled: one after another without replacement, as the draft's most probable tokens, or
// each from the whole draft distribution.
enum class Proposal { sampled, deterministic, independent };

struct AcceptanceOptions {
  Rule rule = Rule::exact;
  Residual residual = Residual::paper;
  Proposal proposal = Proposal::sampled;
  bool greedy = false;  // temperature 0: most probable tokens, no uniforms
  std::int64_t k = 0;   // neighbours looked at besides the token itself
  // lantern: delta; lantern++: lambda; cool: weight; typical: epsilon and alpha; grouped: gap and squared
  // distance. Else entry d - 1 belongs to tokens d below the root, the last to all deeper.
  std::vector<double> bounds;
  std::int64_t first_image_id = 0;            // token id of code 0
  std::vector<std::vector<double>> codebook;  // grouped: vectors of the tokens from first_image_id on
  // Lumina's programs only: ids whose numerator is always 1. Other ids outside the codes have numerator 0.
  std::vector<std::int64_t> syntax_ids;
};

// A drafted tree and what the target and the draft say at its nodes.
struct ScoredTree {
  std::vector<std::int64_t> tokens;   // [N]; < 0 or >= V: padding, never accepted; the root's is not read
  std::vector<std::int64_t> parents;  // [N] smaller than their own index; -1: the root, and nodes left out
  // [N] row of `draft` the children of n were sampled from, or for official_pac and an n without any, that
  // the last token is; -1 none
  std::vector<std::int64_t> draft_rows;
  std::vector<Distribution> target;  // [N] rows of V: what follows node n
  std::vector<Distribution> draft;   // rows of V; unused by deterministic children
  // At least N values in [0, 1): entry n belongs to node n, entry 0 to the final token. The official
  // residuals take entries 1, 2, ... in the order of the tests.
  std::vector<double> uniforms;
};

enum StatusBit : std::int64_t { kBadTarget = 1, kBadDraft = 2 };

enum class Reason { leaf, rejected, bad_target, bad_draft, skipped };

// One test, in order. Accepted iff uniform * denominator < numerator (official residuals: <=).
struct Test {
  std::int64_t node = 0;
  double uniform = 0;
  double numerator = 0;
  double denominator = 0;
  std::int64_t neighbours = 0;  // neighbours whose probability the token borrowed
  bool accepted = false;
  bool skipped = false;  // official residuals: denominator 0, the uniform is used up
};

struct Verdict {
  std::vector<std::int64_t> path;  // accepted nodes, the root first
  Distribution final;              // the distribution of the next token; zeros when there is none
  std::int64_t token = -1;         // sampled from it; -1 when the row is bad
  std::int64_t status = 0;         // StatusBit
  Reason reason = Reason::leaf;    // why the walk ended
  int fallback = 0;  // 1 or 2: which fallback for a residual without mass was taken at the last node
  std::vector<Test> tests;
};

// Walks the tree and samples one more token. `table` may be null when the rule borrows nothing. Throws
// Error(usage) for shapes that do not fit, for rule block and a tree that is no chain, and for a
// relaxed rule without bounds or table.
Verdict verify(const ScoredTree& tree, const AcceptanceOptions& options,
               const NeighbourTable* table = nullptr);

// The smallest id whose cumulative probability exceeds uniform * total; ids of probability 0 are never
// sampled. -1 when there is no mass.
std::int64_t sample_token(const Distribution& distribution, double uniform);

// The smallest id of the largest probability.
std::int64_t most_probable(const Distribution& distribution);

}  // namespace lamplighter::reference
