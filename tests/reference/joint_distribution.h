#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/reference/verify.h"

// The exact distribution of one cycle on a toy problem: every outcome of the draft, and both outcomes of
// every test.
namespace lamplighter::reference {

using Tokens = std::vector<std::int64_t>;
using JointDistribution = std::map<Tokens, double>;  // emitted tokens: the accepted ones and the final one
using VerifyFunction =
    std::function<Verdict(const ScoredTree&, const AcceptanceOptions&, const NeighbourTable*)>;

struct ToyProblem {
  std::int64_t vocabulary = 0;
  std::vector<std::int64_t> parents;                  // [N] of the tree, root -1
  std::function<Distribution(const Tokens&)> target;  // what follows these tokens below the root
  std::function<Distribution(const Tokens&)> draft;
};

// One way a cycle can go: uniforms that take it, what came out, and its probability without the final token.
using Branch = std::function<void(const ScoredTree&, const Verdict&, double probability)>;

class DistributionOfCycle {
 public:
  DistributionOfCycle(const ToyProblem& problem, const AcceptanceOptions& options,
                      const NeighbourTable* table, VerifyFunction verify)
      : problem_(problem), options_(options), table_(table), verify_(std::move(verify)) {}

  void each_branch(const Branch& branch) {
    branch_ = branch;
    const std::size_t nodes = problem_.parents.size();
    tree_.parents = problem_.parents;
    tree_.tokens.assign(nodes, -1);
    tree_.draft_rows.resize(nodes);
    std::iota(tree_.draft_rows.begin(), tree_.draft_rows.end(), 0);
    tree_.target.resize(nodes);
    tree_.draft.resize(nodes);
    contexts_.assign(nodes, {});
    enter(0);
    sample(1, 1);
  }

  JointDistribution distribution() {
    JointDistribution distribution;
    each_branch([&](const ScoredTree& tree, const Verdict& verdict, double probability) {
      Tokens emitted;
      for (std::size_t i = 1; i < verdict.path.size(); ++i) {
        emitted.push_back(tree.tokens[static_cast<std::size_t>(verdict.path[i])]);
      }
      emitted.push_back(0);
      for (std::size_t id = 0; id < verdict.final.size(); ++id) {
        if (verdict.final[id] <= 0) continue;
        emitted.back() = static_cast<std::int64_t>(id);
        distribution[emitted] += probability * verdict.final[id];
      }
    });
    return distribution;
  }

 private:
  void enter(std::size_t node) {
    tree_.target[node] = problem_.target(contexts_[node]);
    tree_.draft[node] = problem_.draft(contexts_[node]);
  }

  // All tokens node n can have, given those before it.
  void sample(std::size_t node, double probability) {
    if (node == problem_.parents.size()) return decide({}, probability);
    const auto parent = static_cast<std::size_t>(problem_.parents[node]);
    Distribution left = tree_.draft[parent];
    const bool sampled = parent == 0 || tree_.tokens[parent] >= 0;
    if (options_.proposal != Proposal::independent) {
      for (std::size_t other = 1; other < node; ++other) {
        const bool sibling = problem_.parents[other] == problem_.parents[node];
        // Deterministic children may have probability 0, but not twice the same token.
        if (sibling && tree_.tokens[other] >= 0) left[static_cast<std::size_t>(tree_.tokens[other])] = -1;
      }
    }
    const auto positive = [](double sum, double value) { return sum + std::max(value, 0.0); };
    const double sum = std::accumulate(left.begin(), left.end(), 0.0, positive);
    if (options_.proposal == Proposal::deterministic && sampled) {
      const auto best = std::max_element(left.begin(), left.end());
      return take(node, *best < 0 ? -1 : best - left.begin(), probability);
    }
    if (!sampled || sum <= 0) return take(node, -1, probability);
    for (std::size_t id = 0; id < left.size(); ++id) {
      if (left[id] > 0) take(node, static_cast<std::int64_t>(id), probability * left[id] / sum);
    }
  }

  void take(std::size_t node, std::int64_t token, double probability) {
    tree_.tokens[node] = token;
    contexts_[node] = contexts_[static_cast<std::size_t>(problem_.parents[node])];
    if (token >= 0) contexts_[node].push_back(token);
    enter(node);
    sample(node + 1, probability);
    tree_.tokens[node] = -1;
  }

  // All outcomes of the tests: the first ones as decided, the others accepted here and rejected in turn.
  void decide(std::vector<bool> decisions, double probability) {
    const Verdict verdict = run(decisions);
    const std::vector<double> uniforms = tree_.uniforms;
    for (std::size_t i = decisions.size(); i < verdict.tests.size(); ++i) {
      const Test& test = verdict.tests[i];
      decisions.push_back(true);
      if (test.skipped) continue;
      const double chance = std::min(1.0, test.numerator / test.denominator);
      if (chance < 1) {
        decisions.back() = false;
        decide(decisions, probability * (1 - chance));
        decisions.back() = true;
      }
      if (!(chance > 0)) return;
      probability *= chance;
    }
    tree_.uniforms = uniforms;
    branch_(tree_, verdict, probability);
  }

  Verdict run(const std::vector<bool>& decisions) {
    constexpr double kAccept = 0, kReject = 1 - 1.0 / (1LL << 53);
    const bool by_order = is_official(options_.residual);
    tree_.uniforms.assign(problem_.parents.size(), kAccept);
    Verdict verdict = verify_(tree_, options_, table_);
    for (std::size_t i = 0; i < decisions.size(); ++i) {
      if (decisions[i]) continue;
      tree_.uniforms[by_order ? i + 1 : static_cast<std::size_t>(verdict.tests[i].node)] = kReject;
      verdict = verify_(tree_, options_, table_);
    }
    return verdict;
  }

  const ToyProblem& problem_;
  const AcceptanceOptions options_;
  const NeighbourTable* table_;
  const VerifyFunction verify_;
  Branch branch_;
  ScoredTree tree_;
  std::vector<Tokens> contexts_;
};

// The distribution of `length` tokens: emitted sequences go on with plain samples from the target.
inline JointDistribution continued(const JointDistribution& distribution, const ToyProblem& problem,
                                   std::size_t length) {
  JointDistribution result;
  const std::function<void(const Tokens&, double)> extend = [&](const Tokens& tokens, double probability) {
    if (tokens.size() == length) {
      result[tokens] += probability;
      return;
    }
    const Distribution next = problem.target(tokens);
    for (std::size_t id = 0; id < next.size(); ++id) {
      if (next[id] <= 0) continue;
      Tokens longer = tokens;
      longer.push_back(static_cast<std::int64_t>(id));
      extend(longer, probability * next[id]);
    }
  };
  for (const auto& [tokens, probability] : distribution) extend(tokens, probability);
  return result;
}

inline JointDistribution plain_distribution(const ToyProblem& problem, std::size_t length) {
  return continued({{{}, 1.0}}, problem, length);
}

inline double largest_difference(const JointDistribution& a, const JointDistribution& b) {
  double largest = 0;
  const auto compare = [&](const JointDistribution& one, const JointDistribution& other) {
    for (const auto& [tokens, probability] : one) {
      const auto found = other.find(tokens);
      largest = std::max(largest, std::abs(probability - (found == other.end() ? 0 : found->second)));
    }
  };
  compare(a, b);
  compare(b, a);
  return largest;
}

// A wrong verify: siblings are all verified against the same rows, and the residual is taken once.
inline Verdict verify_without_update(const ScoredTree& tree, const AcceptanceOptions&,
                                     const NeighbourTable*) {
  Verdict verdict;
  verdict.path = {0};
  for (bool accepted = true; accepted;) {
    accepted = false;
    const std::int64_t node = verdict.path.back();
    const Distribution& target = tree.target[static_cast<std::size_t>(node)];
    const Distribution& draft = tree.draft[static_cast<std::size_t>(node)];
    verdict.final = target;
    for (std::size_t child = 1; child < tree.parents.size() && !accepted; ++child) {
      if (tree.parents[child] != node || tree.tokens[child] < 0) continue;
      const auto token = static_cast<std::size_t>(tree.tokens[child]);
      Test test{static_cast<std::int64_t>(child), tree.uniforms[child], target[token], draft[token]};
      test.accepted = accepted = test.uniform * test.denominator < test.numerator;
      verdict.tests.push_back(test);
      if (accepted) {
        verdict.path.push_back(test.node);
        continue;
      }
      double sum = 0;
      for (std::size_t i = 0; i < target.size(); ++i) {
        verdict.final[i] = std::max(target[i] - draft[i], 0.0);
        sum += verdict.final[i];
      }
      for (double& value : verdict.final) value /= sum > 0 ? sum : 1;
    }
  }
  return verdict;
}

}  // namespace lamplighter::reference
