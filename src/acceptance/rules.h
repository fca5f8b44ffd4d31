#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/host_device.h"
#include "lamplighter/options.h"

// The acceptance rules: one row of kRules says all that the engine knows of a rule. A new rule is an
// enumerator, its row and its numbers here, and what it does in kernels/verify.
namespace lamplighter {

// Which drafted tokens are accepted; arXiv numbers and formulas stand in kernels/verify/verify.h.
enum class Rule {
  exact,         // recursive rejection sampling
  lantern,       // LANTERN (arXiv 2410.03355, section 3.2): neighbours lend probability up to delta
  lantern_plus,  // LANTERN++ ("Enhancing Relaxed Speculative Decoding with Static Tree Drafting for Visual
                 // Auto-regressive Models", section 4): up to a multiple of the token's own
  traversal,     // traversal verification of trees
  block,         // block verification of chains
  cool,          // Cool-SD (arXiv 2601.09212): a weight that falls with the depth
  typical,       // Medusa (arXiv 2401.10774): tokens that are probable for the entropy of their distribution
  grouped,       // Grouped Speculative Decoding (2025): the probability of a group of similar tokens
  lenient,       // Leviathan et al. 2023, appendix A.5: the draft's probabilities count l times, so that no
                 // token is generated more than 1 / l times as often as it should
  official_pac   // the official code of SJD-PAC: the longest chain of nodes, each tested whether its earlier
                 // siblings were accepted or not
};

// What is left of the target distribution after a rejection. paper: LANTERN's; optimal: the completion
// nearest to the target; the others repeat the official code of LANTERN.
enum class Residual {
  paper,
  optimal,
  official_static,
  official_dynamic,
  official_lumina_static,
  official_lumina_dynamic
};

// How a rule goes through the drafted tree: from the last accepted node to its children; by the probabilities
// of whole paths; or it takes the longest chain of nodes that it accepts one by one.
enum class Walk { nodes, paths, longest_chain };

// A number for each depth: values[d - 1] for nodes at depth d, the last one for all deeper nodes.
struct ByDepth {
  static constexpr int kMost = 63;

  int count = 1;
  float values[kMost] = {};
};

// The numbers of the rules as the kernels read them. Without any a rule is exact.
struct RuleNumbers {
  ByDepth delta;                            // lantern: the most probability that neighbours lend
  ByDepth lambda{1, {1}};                   // lantern++: the most growth of a token's probability
  ByDepth weights{1, {1}};                  // cool, lenient: factors of the target's probability
  float epsilon = 0, alpha = 0;             // typical
  float group_gap = 0, group_distance = 0;  // grouped
};

// A number of a rule as an option of methods; see MethodOption (draft/options/options.h).
struct RuleOption {
  using Field = std::variant<std::optional<float> MethodOptions::*, std::vector<float> MethodOptions::*>;

  const char* key = nullptr;
  const char* word = nullptr;
  const char* label = nullptr;
  const char* help = nullptr;
  Field field = {};
  float usual = 0;  // the default
  double least = 0, most = std::numeric_limits<double>::infinity();
};

enum RuleFlag : unsigned {
  kLossless = 0,
  kLossy = 1,
  kBorrows = 2,            // tokens borrow the probability of their neighbours
  kOfficialResiduals = 4,  // may leave what the official code of LANTERN leaves
  kCodebook = 8,           // compares the codebook's vectors
  kChosenByNumber = 16,    // its first number alone selects it where the method's rule is exact
  kChains = 32,            // verifies chains alone
  kManyNeighbours = 64     // borrows from 1/32 of the codes by default, else from 10
};

struct RuleTraits {
  const char* name;
  Walk walk;
  unsigned flags;
  void (*set)(const MethodOptions& resolved, RuleNumbers& numbers) = nullptr;
  std::array<RuleOption, 3> options = {};  // unused ones have no key

  constexpr bool lossy() const { return (flags & kLossy) != 0; }
  constexpr bool borrows() const { return (flags & kBorrows) != 0; }
  constexpr bool reads_codebook() const { return (flags & kCodebook) != 0; }
  constexpr bool chosen_by_number() const { return (flags & kChosenByNumber) != 0; }
  constexpr bool needs_chains() const { return (flags & kChains) != 0; }
  constexpr bool many_neighbours() const { return (flags & kManyNeighbours) != 0; }
  constexpr bool official_residuals() const { return (flags & kOfficialResiduals) != 0; }
};

// The numbers of each rule from its options.
namespace rule_numbers {

inline void delta(const MethodOptions& o, RuleNumbers& n) {
  n.delta.values[0] = *o.delta;
}
inline void lambda(const MethodOptions& o, RuleNumbers& n) {
  n.lambda.count = std::min(static_cast<int>(o.lambda.size()), ByDepth::kMost);
  std::copy_n(o.lambda.begin(), n.lambda.count, n.lambda.values);
}
inline void annealed(const MethodOptions& o, RuleNumbers& n) {
  n.weights.count = ByDepth::kMost;
  for (int depth = 1; depth <= ByDepth::kMost; ++depth)
    n.weights.values[depth - 1] = *o.delta * std::exp(-*o.nu * static_cast<float>(depth) - *o.mu);
}
inline void posterior(const MethodOptions& o, RuleNumbers& n) {
  n.epsilon = *o.epsilon, n.alpha = *o.alpha;
}
inline void group(const MethodOptions& o, RuleNumbers& n) {
  n.group_gap = *o.group_gap, n.group_distance = *o.group_distance;
}
inline void lenience(const MethodOptions& o, RuleNumbers& n) {
  n.weights.values[0] = 1 / *o.lenience;
}

}  // namespace rule_numbers

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// In the order of the enumeration.
inline constexpr RuleTraits kRules[] = {
    {"exact", Walk::nodes, kOfficialResiduals},
    {"lantern",
     Walk::nodes,
     kLossy | kBorrows | kOfficialResiduals | kManyNeighbours,
     rule_numbers::delta,
     {{{"delta", "delta", "Delta", "Largest probability that neighbours may lend", &MethodOptions::delta,
        0.05F, 0, 1}}}},
    {"lantern++",
     Walk::nodes,
     kLossy | kBorrows | kOfficialResiduals,
     rule_numbers::lambda,
     {{{"lambda", "lambda", "Lambda",
        "A token counts at most X times its probability; one for each depth: 3,2", &MethodOptions::lambda, 2,
        1}}}},
    {"traversal", Walk::paths, kLossless},
    {"block", Walk::paths, kChains},
    {"cool",
     Walk::nodes,
     kLossy,
     rule_numbers::annealed,
     {{{"delta", "delta", "Delta", "Scale of the weights", &MethodOptions::delta, 4},
       {"mu", "mu", "Mu", "The weight at depth i is delta * exp(-nu * i - mu)", &MethodOptions::mu, 0,
        -kUnlimited},
       {"nu", "nu", "Nu", "How fast the weights fall with the depth", &MethodOptions::nu, 0.7F,
        -kUnlimited}}}},
    {"typical",
     Walk::longest_chain,
     kLossy,
     rule_numbers::posterior,
     {{{"epsilon", "epsilon", "Epsilon",
        "Tokens with a probability above min(epsilon, alpha * exp(-entropy)) are accepted",
        &MethodOptions::epsilon, 0.09F, 0, 1},
       {"alpha", "alpha", "Alpha", "See epsilon", &MethodOptions::alpha, 0.3F}}}},
    {"grouped",
     Walk::nodes,
     kLossy | kCodebook,
     rule_numbers::group,
     {{{"group_gap", "gap", "Group gap", "Largest difference of probabilities in a group",
        &MethodOptions::group_gap, 0.15F, 0, 1},
       {"group_distance", "distance", "Group distance", "Largest squared distance of code vectors in a group",
        &MethodOptions::group_distance, 0.5F}}}},
    {"lenient",
     Walk::nodes,
     kLossy | kChosenByNumber,
     rule_numbers::lenience,
     {{{"lenience", "lenience", "Lenience",
        "Drafts are accepted with probability min(1, p / (X q)); 1 is lossless; where the method's rule is "
        "exact, this option selects lenient",
        &MethodOptions::lenience, 0.5F, 0.001, 1}}}},
    {"official-pac", Walk::longest_chain, kLossy}};

constexpr const RuleTraits& traits_of(Rule rule) {
  return kRules[static_cast<std::size_t>(rule)];
}

LAMPLIGHTER_HOST_DEVICE inline bool is_official(Residual residual) {
  return residual != Residual::paper && residual != Residual::optimal;
}

// By their names ("lantern++", "official-static", ...). Throw Error(usage) with the names.
Rule rule_from(const std::string& name);
Residual residual_from(const std::string& name);
std::string to_string(Rule rule);
std::string to_string(Residual residual);
std::vector<std::string> rule_names();
std::vector<std::string> residual_names();

}  // namespace lamplighter
