#include "measure/tune.h"

#include <algorithm>
#include <array>

namespace lamplighter {
namespace {

// Number of children for the first `nodes` ranks at a depth.
struct Width {
  std::int64_t ranks, children;
};
constexpr std::array<Width, 8> kSurvey{{{1, 4}, {2, 3}, {2, 3}, {1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}}};

std::int64_t children_of(std::size_t depth, std::int64_t rank) {
  if (depth >= kSurvey.size()) return 0;
  return rank < kSurvey[depth].ranks ? kSurvey[depth].children : 0;
}

void grow(std::int64_t deepest, TreePath& path, std::vector<TreePath>& paths) {
  if (static_cast<std::int64_t>(path.size()) == deepest) return;
  const std::int64_t children = children_of(path.size(), path.empty() ? 0 : path.back());
  for (std::int64_t rank = 0; rank < children; ++rank) {
    path.push_back(rank);
    paths.push_back(path);
    grow(deepest, path, paths);
    path.pop_back();
  }
}

// Whether nodes of this depth and rank have children.
bool is_expanded(const Tree& tree, std::int64_t depth, std::int64_t rank) {
  const std::vector<std::int64_t> nodes = tree.level(depth);
  return std::any_of(nodes.begin(), nodes.end(), [&](std::int64_t node) {
    return tree.rank[static_cast<std::size_t>(node)] == rank && tree.child_count(node) > 0;
  });
}

}  // namespace

Tree survey_tree(std::int64_t deepest) {
  std::vector<TreePath> paths;
  TreePath root;
  grow(deepest, root, paths);
  return make_tree(std::move(paths), "survey tree");
}

std::vector<Tree> cost_trees(std::int64_t nodes, std::int64_t deepest) {
  std::vector<Tree> trees{make_tree({})};
  std::vector<TreePath> paths;
  for (std::int64_t count = 1; count <= nodes; ++count) {
    if (count <= deepest)
      paths.emplace_back(static_cast<std::size_t>(count), 0);
    else
      paths.push_back({count - deepest});
    trees.push_back(make_tree(paths));
  }
  return trees;
}

SiblingAcceptance measured_acceptance(const Tree& survey, const std::vector<Statistics>& images,
                                      std::int64_t least) {
  SiblingAcceptance acceptance;
  std::int64_t parents = 0;
  for (const Statistics& image : images) parents += static_cast<std::int64_t>(image.cycles.size());
  for (std::int64_t depth = 1; depth <= survey.max_depth() && parents >= std::max<std::int64_t>(1, least);
       ++depth) {
    const auto row = static_cast<std::size_t>(depth - 1);
    std::vector<std::int64_t> counts;
    for (const Statistics& image : images) {
      const std::vector<std::int64_t>& reached = image.reached[row];
      counts.resize(std::max(counts.size(), reached.size()));
      for (std::size_t rank = 0; rank < reached.size(); ++rank) counts[rank] += reached[rank];
    }
    std::vector<double> shares;
    std::int64_t next = 0;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      shares.push_back(static_cast<double>(counts[rank]) / static_cast<double>(parents));
      if (is_expanded(survey, depth, static_cast<std::int64_t>(rank))) next += counts[rank];
    }
    acceptance.push_back(std::move(shares));
    parents = next;
  }
  return acceptance;
}

Interval tokens_by_image(const Tree& tree, const Tree& survey, const std::vector<Statistics>& images) {
  std::vector<double> tokens;
  for (const Statistics& image : images)
    tokens.push_back(expected_tokens(tree, measured_acceptance(survey, {image}, 1)));
  return mean_interval(tokens);
}

TreeCosts measured_costs(const std::vector<CycleRounds>& trees, std::int64_t deepest) {
  TreeCosts costs;
  double depths = 0, drafts = 0, products = 0, squares = 0;
  for (std::size_t nodes = 0; nodes < trees.size(); ++nodes) {
    const StageTimes times = median_stages(trees[nodes]);
    const double before = costs.target_pass.empty() ? 0 : costs.target_pass.back();
    costs.target_pass.push_back(std::max(before, times.score + times.verify + times.commit));
    if (nodes == 0) continue;  // drafts nothing
    const double d = static_cast<double>(std::min(static_cast<std::int64_t>(nodes), deepest));
    depths += d;
    squares += d * d;
    drafts += times.draft;
    products += d * times.draft;
  }
  const double count = static_cast<double>(trees.size()) - 1;
  const double spread = count * squares - depths * depths;
  if (count < 1) return costs;
  // Least squares. A single depth has no slope, so all its time counts per level.
  costs.draft_level =
      spread > 0 ? std::max(0.0, (count * products - depths * drafts) / spread) : drafts / depths;
  costs.cycle = std::max(0.0, (drafts - costs.draft_level * depths) / count);
  return costs;
}

}  // namespace lamplighter
