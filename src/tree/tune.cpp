#include "tree/tune.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace lamplighter {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

double probability_of(const SiblingAcceptance& acceptance, std::int64_t depth, std::int64_t rank) {
  if (acceptance.empty()) return 0;
  const std::vector<double>& row = acceptance[std::min(at(depth), acceptance.size()) - 1];
  return at(rank) < row.size() ? row[at(rank)] : 0;
}

void check(const SiblingAcceptance& acceptance, const TreeCosts& costs, std::int64_t max_depth) {
  const auto reject = [](const std::string& what) { throw Error(ExitCode::usage, "tree tuning: " + what); };
  for (std::size_t row = 0; row < acceptance.size(); ++row) {
    double sum = 0;
    bool inside = true;
    for (const double value : acceptance[row]) {
      inside = inside && value >= 0;
      sum += value;
    }
    if (!inside || !(sum <= 1 + 1e-9)) {
      reject("acceptance at depth " + std::to_string(row + 1) + " is not a distribution over siblings");
    }
  }
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  const auto at_least_0 = [](double value) { return value >= 0 && std::isfinite(value); };
  if (costs.target_pass.empty() || costs.target_pass.size() > at(kMaxTreeNodes) ||
      !std::all_of(costs.target_pass.begin(), costs.target_pass.end(), positive)) {
    reject("expected 1 to 64 positive costs of a target pass");
  }
  if (!at_least_0(costs.draft_level) || !at_least_0(costs.cycle)) reject("costs must not be negative");
  if (max_depth < 0) reject("the depth must not be negative");
}

// Best trees of every size below a node of every depth, for one maximal depth.
class Programme {
 public:
  Programme(const SiblingAcceptance& acceptance, std::int64_t nodes, std::int64_t depth);

  // Expected accepted tokens of the best tree with exactly `nodes` nodes, the root counted as 1. Negative
  // when none exists.
  double value(std::int64_t nodes) const { return best_[0][at(nodes)].value; }
  std::vector<TreePath> paths(std::int64_t nodes) const;

 private:
  struct Cell {
    double value = -1;
    std::int64_t choice = 0;  // children of the best tree, or nodes without the last child's subtree
  };
  using Table = std::vector<std::vector<Cell>>;

  void solve(std::int64_t depth);
  void collect(std::int64_t depth, std::int64_t nodes, TreePath& path, std::vector<TreePath>& paths) const;

  const SiblingAcceptance& acceptance_;
  std::int64_t nodes_, depth_;
  std::vector<std::vector<Cell>> best_;  // [depth][nodes]
  std::vector<Table> with_;              // [depth][nodes][children]: with exactly this many children
};

Programme::Programme(const SiblingAcceptance& acceptance, std::int64_t nodes, std::int64_t depth)
    : acceptance_(acceptance), nodes_(nodes), depth_(depth) {
  best_.assign(at(depth + 1), std::vector<Cell>(at(nodes + 1)));
  with_.assign(at(depth + 1), Table(at(nodes + 1), std::vector<Cell>(at(nodes))));
  for (std::int64_t level = depth; level >= 0; --level) solve(level);
}

void Programme::solve(std::int64_t depth) {
  Table& with = with_[at(depth)];
  with[1][0].value = 1;
  for (std::int64_t nodes = 2; depth < depth_ && nodes <= nodes_; ++nodes) {
    for (std::int64_t children = 1; children < nodes; ++children) {
      const double chance = probability_of(acceptance_, depth + 1, children - 1);
      Cell& cell = with[at(nodes)][at(children)];
      for (std::int64_t others = children; others < nodes; ++others) {
        const double before = with[at(others)][at(children - 1)].value;
        const double below = best_[at(depth + 1)][at(nodes - others)].value;
        if (before < 0 || below < 0) continue;
        const double value = before + chance * below;
        if (value > cell.value) cell = {value, others};
      }
    }
  }
  for (std::int64_t nodes = 1; nodes <= nodes_; ++nodes) {
    Cell& cell = best_[at(depth)][at(nodes)];
    for (std::int64_t children = 0; children < nodes; ++children) {
      const double value = with[at(nodes)][at(children)].value;
      if (value > cell.value) cell = {value, children};
    }
  }
}

void Programme::collect(std::int64_t depth, std::int64_t nodes, TreePath& path,
                        std::vector<TreePath>& paths) const {
  for (std::int64_t children = best_[at(depth)][at(nodes)].choice; children > 0; --children) {
    const std::int64_t others = with_[at(depth)][at(nodes)][at(children)].choice;
    path.push_back(children - 1);
    paths.push_back(path);
    collect(depth + 1, nodes - others, path, paths);
    path.pop_back();
    nodes = others;
  }
}

std::vector<TreePath> Programme::paths(std::int64_t nodes) const {
  std::vector<TreePath> paths;
  TreePath path;
  collect(0, nodes, path, paths);
  return paths;
}

}  // namespace

double expected_tokens(const Tree& tree, const SiblingAcceptance& acceptance) {
  std::vector<double> reached{1};
  double sum = 1;
  for (std::int64_t node = 1; node < tree.size(); ++node) {
    reached.push_back(reached[at(tree.parent[at(node)])] *
                      probability_of(acceptance, tree.depth[at(node)], tree.rank[at(node)]));
    sum += reached.back();
  }
  return sum;
}

double cycle_time(const Tree& tree, const TreeCosts& costs) {
  const double target = costs.target_pass[at(tree.drafted())];
  if (tree.drafted() == 0) return target;
  return target + static_cast<double>(tree.max_depth()) * costs.draft_level + costs.cycle;
}

TunedTree best_tree(const SiblingAcceptance& acceptance, const TreeCosts& costs, std::int64_t max_depth) {
  check(acceptance, costs, max_depth);
  const auto most = static_cast<std::int64_t>(costs.target_pass.size());
  TunedTree best{make_tree({}), 1, costs.target_pass[0]};
  for (std::int64_t depth = 1; depth <= std::min(max_depth, most - 1); ++depth) {
    const Programme programme(acceptance, most, depth);
    for (std::int64_t nodes = 2; nodes <= most; ++nodes) {
      if (programme.value(nodes) < 0) continue;
      TunedTree found{make_tree(programme.paths(nodes)), programme.value(nodes), 0};
      found.time = cycle_time(found.tree, costs);
      const double gain = found.tokens * best.time - best.tokens * found.time;
      const bool smaller = found.tree.size() < best.tree.size();
      const double close = 1e-12 * best.tokens * found.time;
      if (gain > close || (gain > -close && smaller)) best = std::move(found);
    }
  }
  return best;
}

}  // namespace lamplighter
