// Names of the acceptance rules; the rule that runs is the operator in kernels/judge.
#pragma once

#include <string>

namespace lamplighter {

// How a drafted token is judged. exact: recursive rejection; traversal (trees) and block (chains) judge whole
// paths and are exact as well. lantern (arXiv 2410.03355, section 3.2) and lantern++ ("Enhancing Relaxed
// Speculative Decoding with Static Tree Drafting for Visual Auto-regressive Models", section 4) let a token
// borrow the probability of its neighbours and are not. Neither is cool (Cool-SD, arXiv 2601.09212): it
// scales a token's probability by a weight that falls with its depth. Nor typical (Medusa, arXiv 2401.10774):
// it takes every token that is probable enough for the entropy of its row. Nor grouped (Grouped Speculative
// Decoding, 2025): it tests the mass of a group of tokens that are alike in the place of the token's own. Nor
// lenient (Leviathan et al. 2023, appendix A.5): it multiplies the draft's probabilities by the lenience l
// where they are compared with and subtracted from the target's, so that no token comes out more than 1 / l
// times as often as it should. Nor official_pac, what the published program of SJD-PAC does: it lets the
// longest chain win among nodes that are tested whether their earlier siblings were accepted or not.
enum class Rule {
  exact,
  lantern,
  lantern_plus,
  traversal,
  block,
  cool,
  typical,
  grouped,
  lenient,
  official_pac
};

// What is left of the target after a rejection. paper: LANTERN's; optimal: the completion nearest to the
// target; the others repeat LANTERN's published programs.
enum class Residual {
  paper,
  optimal,
  official_static,
  official_dynamic,
  official_lumina_static,
  official_lumina_dynamic
};

bool is_relaxed(Rule rule);
bool borrows(Rule rule);  // lantern, lantern++
bool is_official(Residual residual);

// By their names ("lantern++", "official-static", ...). Throw Error(usage) listing the names.
Rule rule_from(const std::string& name);
Residual residual_from(const std::string& name);
std::string to_string(Rule rule);
std::string to_string(Residual residual);

}  // namespace lamplighter
