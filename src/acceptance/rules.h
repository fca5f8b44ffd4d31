#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lamplighter {

// How a drafted token is judged. exact: recursive rejection; traversal (trees) and block (chains) judge whole
// paths and are exact as well. lantern (arXiv 2410.03355, section 3.2) and lantern++ ("Enhancing Relaxed
// Speculative Decoding with Static Tree Drafting for Visual Auto-regressive Models", section 4) let a token
// borrow the probability of its neighbours and are not.
enum class Rule { exact, lantern, lantern_plus, traversal, block };

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

// How siblings were drawn: one after another without replacement, as the draft's most probable tokens, or
// each from the whole draft distribution.
enum class Proposal { sampled, deterministic, independent };

bool is_relaxed(Rule rule);
bool is_official(Residual residual);

// By their names ("lantern++", "official-static", ...). Throw Error(usage) listing the names.
Rule rule_from(const std::string& name);
Residual residual_from(const std::string& name);
std::string to_string(Rule rule);
std::string to_string(Residual residual);

struct AcceptanceOptions {
  Rule rule = Rule::exact;
  Residual residual = Residual::paper;
  Proposal proposal = Proposal::sampled;
  bool greedy = false;  // temperature 0: most probable tokens, no uniforms
  std::int64_t k = 0;   // neighbours looked at besides the token itself
  // lantern: delta; lantern++: lambda. Entry d - 1 belongs to tokens d below the root, the last to all
  // deeper.
  std::vector<double> bounds;
  std::int64_t first_image_id = 0;  // token id of code 0
  // Lumina's programs only: ids whose numerator is always 1. Other ids outside the codes have numerator 0.
  std::vector<std::int64_t> syntax_ids;
};

}  // namespace lamplighter
