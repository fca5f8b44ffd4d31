#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/reference/walk.h"

// Typical acceptance: a token is right where it is probable enough for the entropy of its row.
namespace lamplighter::reference {
namespace {

// min(epsilon, alpha exp(-H)), H = -sum p ln(p + 1e-5).
double threshold(const Walk& walk, const Distribution& target) {
  double entropy = 0;
  for (const double p : target) {
    if (p > 0) entropy -= p * std::log(p + 1e-5);
  }
  return std::min(walk.options.bounds[0], walk.options.bounds[1] * std::exp(-entropy));
}

// The probability of a right token, 0 for the others.
double probability(const Walk& walk, std::int64_t node, Verdict& verdict) {
  const Distribution& target = walk.target(walk.tree.parents[at(node)]);
  const std::int64_t token = walk.token(node);
  if (walk.is_padding(token) || is_bad(target)) return 0;
  Test test;
  test.node = node;
  test.uniform = threshold(walk, target);
  test.numerator = target[at(token)];
  test.denominator = 1;
  test.accepted = test.numerator > test.uniform;
  verdict.tests.push_back(test);
  return test.accepted ? test.numerator : 0;
}

struct Chain {
  std::vector<std::int64_t> nodes;
  double log_probability = 0;
};

}  // namespace

void verify_typical(const Walk& walk, Verdict& verdict) {
  // The longest chain of right nodes, then the most probable, then the first in depth-first order.
  Chain best{{0}, 0};
  std::vector<Chain> pending{best};
  while (!pending.empty()) {
    const Chain chain = pending.back();
    pending.pop_back();
    const bool as_long = chain.nodes.size() == best.nodes.size();
    if (chain.nodes.size() > best.nodes.size() || (as_long && chain.log_probability > best.log_probability))
      best = chain;
    const std::vector<std::int64_t>& children = walk.children[at(chain.nodes.back())];
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      const double p = probability(walk, *child, verdict);
      if (!(p > 0)) continue;
      pending.push_back(chain);
      pending.back().nodes.push_back(*child);
      pending.back().log_probability += std::log(p);
    }
  }
  verdict.path = best.nodes;
  finish(walk, verdict, walk.target(best.nodes.back()),
         walk.children[at(best.nodes.back())].empty() ? Reason::leaf : Reason::rejected);
}

}  // namespace lamplighter::reference
