#include "tests/reference/verify.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lamplighter/error.h"
#include "tests/reference/walk.h"

namespace lamplighter::reference {
namespace {

[[noreturn]] void reject(const std::string& what) {
  throw Error(ExitCode::usage, "verify: " + what);
}

void check_shapes(const ScoredTree& tree) {
  const std::size_t nodes = tree.parents.size();
  if (nodes == 0) reject("the tree has no root");
  if (tree.tokens.size() != nodes || tree.draft_rows.size() != nodes || tree.target.size() != nodes) {
    reject("tokens, parents, draft_rows and target rows must be as many");
  }
  if (tree.uniforms.size() < nodes) reject("expected a uniform for every node");
  const std::size_t vocabulary = tree.target[0].size();
  const auto fits = [&](const Distribution& row) { return row.size() == vocabulary; };
  if (vocabulary == 0 || !std::all_of(tree.target.begin(), tree.target.end(), fits) ||
      !std::all_of(tree.draft.begin(), tree.draft.end(), fits)) {
    reject("all rows must be of one length");
  }
  for (std::size_t node = 0; node < nodes; ++node) {
    const std::int64_t parent = tree.parents[node];
    if (parent < -1 || parent >= static_cast<std::int64_t>(node)) {
      reject("parents[" + std::to_string(node) + "] is " + std::to_string(parent));
    }
    if (tree.draft_rows[node] < -1 || tree.draft_rows[node] >= static_cast<std::int64_t>(tree.draft.size())) {
      reject("draft_rows[" + std::to_string(node) + "] is " + std::to_string(tree.draft_rows[node]));
    }
  }
}

void check_options(const AcceptanceOptions& options, const NeighbourTable* table) {
  if (!traits_of(options.rule).lossy() || options.rule == Rule::official_pac) return;
  if (options.bounds.empty()) reject("rule " + to_string(options.rule) + " needs a bound");
  if (traits_of(options.rule).borrows() && options.k > 0 && table == nullptr) {
    reject("rule " + to_string(options.rule) + " needs a table of neighbours");
  }
}

Walk make_walk(const ScoredTree& tree, const AcceptanceOptions& options, const NeighbourTable* table) {
  Walk walk{tree, options, table, static_cast<std::int64_t>(tree.target[0].size()), {}, {}};
  walk.children.resize(tree.parents.size());
  walk.depth.resize(tree.parents.size());
  for (std::size_t node = 1; node < tree.parents.size(); ++node) {
    if (tree.parents[node] < 0) continue;
    const std::size_t parent = at(tree.parents[node]);
    walk.children[parent].push_back(static_cast<std::int64_t>(node));
    walk.depth[node] = walk.depth[parent] + 1;
  }
  return walk;
}

}  // namespace

const Distribution& Walk::draft(std::int64_t node) const {
  const std::int64_t row = tree.draft_rows[at(node)];
  if (row < 0) reject("node " + std::to_string(node) + " has children but no draft row");
  return tree.draft[at(row)];
}

double mass(const Distribution& distribution) {
  double sum = 0;
  for (const double value : distribution) sum += value;
  return sum;
}

bool is_bad(const Distribution& distribution) {
  const double sum = mass(distribution);
  return !(sum > 0) || !std::isfinite(sum);
}

bool normalise(Distribution& distribution, double least) {
  const double sum = mass(distribution);
  if (!(sum > 0) || sum < least) return false;
  for (double& value : distribution) value /= sum;
  return true;
}

Distribution excess(const Distribution& target, const Distribution& draft) {
  Distribution rest(target.size());
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] = std::max(target[i] - draft[i], 0.0);
  return rest;
}

Distribution indicator(std::int64_t vocabulary, std::int64_t token) {
  Distribution distribution(at(vocabulary));
  distribution[at(token)] = 1;
  return distribution;
}

std::vector<std::int64_t> neighbours_of(const Walk& walk, std::int64_t token, std::int64_t count) {
  if (walk.table == nullptr || !traits_of(walk.options.rule).borrows()) return {};
  const std::int64_t code = token - walk.options.first_image_id;
  if (code < 0 || code >= walk.table->codes) return {};
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < std::min(count, walk.table->width); ++i) {
    const std::int64_t id = walk.table->row(code)[i] + walk.options.first_image_id;
    if (id < walk.vocabulary) ids.push_back(id);
  }
  return ids;
}

double bound_at(const Walk& walk, std::int64_t depth) {
  const std::vector<double>& bounds = walk.options.bounds;
  return bounds[std::min(at(depth), bounds.size()) - 1];
}

double borrowing_limit(const Walk& walk, double probability, std::int64_t depth) {
  if (!traits_of(walk.options.rule).borrows()) return 0;
  const double bound = bound_at(walk, depth);
  return walk.options.rule == Rule::lantern ? bound : (bound - 1) * probability;
}

Numerator numerator_of(const Walk& walk, const Distribution& g, std::int64_t token, std::int64_t depth) {
  Numerator numerator;
  const double own = g[at(token)];
  if (walk.options.rule == Rule::cool || walk.options.rule == Rule::lenient) {
    numerator.value = bound_at(walk, depth) * own;
    return numerator;
  }
  const double limit = borrowing_limit(walk, own, depth);
  double borrowed = 0;
  for (const std::int64_t id : neighbours_of(walk, token, walk.options.k)) {
    if (!(borrowed + g[at(id)] < limit)) break;
    borrowed += g[at(id)];
    numerator.taken.push_back(id);
  }
  numerator.value = own + borrowed;
  return numerator;
}

void finish(const Walk& walk, Verdict& verdict, Distribution final, Reason reason) {
  verdict.reason = reason;
  verdict.final = std::move(final);
  if (is_bad(verdict.final)) {
    verdict.final.assign(at(walk.vocabulary), 0.0);
    verdict.status |= kBadTarget;
    verdict.reason = Reason::bad_target;
  }
}

std::int64_t sample_token(const Distribution& distribution, double uniform) {
  const double threshold = uniform * mass(distribution);
  double sum = 0;
  std::int64_t last = -1;
  for (std::size_t id = 0; id < distribution.size(); ++id) {
    if (!(distribution[id] > 0)) continue;
    last = static_cast<std::int64_t>(id);
    sum += distribution[id];
    if (sum > threshold) break;
  }
  return last;
}

std::int64_t most_probable(const Distribution& distribution) {
  return std::max_element(distribution.begin(), distribution.end()) - distribution.begin();
}

Verdict verify(const ScoredTree& tree, const AcceptanceOptions& options, const NeighbourTable* table) {
  check_shapes(tree);
  check_options(options, table);
  const Walk walk = make_walk(tree, options, table);
  Verdict verdict;
  verdict.path = {0};
  if (options.greedy) {
    verify_greedy(walk, verdict);
  } else if (options.rule == Rule::typical) {
    verify_typical(walk, verdict);
  } else if (options.rule == Rule::official_pac) {
    verify_pac(walk, verdict);
  } else if (options.rule == Rule::traversal) {
    verify_traversal(walk, verdict);
  } else if (options.rule == Rule::block) {
    verify_block(walk, verdict);
  } else if (is_official(options.residual)) {
    verify_official(walk, verdict);
  } else {
    verify_recursive(walk, verdict);
  }
  if ((verdict.status & kBadTarget) == 0) {
    verdict.token =
        options.greedy ? most_probable(verdict.final) : sample_token(verdict.final, tree.uniforms[0]);
  }
  return verdict;
}

}  // namespace lamplighter::reference
