#pragma once

#include <map>
#include <string>

#include "tests/golden/programs/acceptance/filters.h"
#include "tests/golden/programs/acceptance/recorded.h"
#include "tests/reference/dynamic.h"
#include "tree/tree.h"

// Replays tree buffers, dynamic trees and neighbour tables.
namespace lamplighter::reference {

// Nodes from the root to every leaf, -1 padded, in lexicographic order with -1 last.
inline Integers leaf_paths(const Tree& tree) {
  std::vector<Integers> rows;
  const auto width = static_cast<std::size_t>(tree.max_depth()) + 1;
  for (std::int64_t node = 0; node < tree.size(); ++node) {
    if (tree.child_count(node) > 0) continue;
    rows.push_back(tree.nodes_to(node));
    rows.back().resize(width, tree.size());  // larger than any node
  }
  std::sort(rows.begin(), rows.end());
  Integers flat;
  for (const Integers& row : rows) {
    for (const std::int64_t node : row) flat.push_back(node == tree.size() ? -1 : node);
  }
  return flat;
}

inline bool sees(const Tree& tree, std::int64_t row, std::int64_t column) {
  return (tree.ancestors[static_cast<std::size_t>(row)] >> column & 1) != 0;
}

// Mask of a draft pass: nodes with children against all nodes up to their depth except the root.
inline Integers drafter_mask(const Tree& tree, std::int64_t depth) {
  Integers mask;
  for (const std::int64_t row : tree.expanded_level(depth)) {
    for (const std::int64_t column : tree.expanded) {
      const std::int64_t column_depth = tree.depth[static_cast<std::size_t>(column)];
      if (column != 0 && column_depth <= depth) mask.push_back(sees(tree, row, column));
    }
  }
  return mask;
}

// Derives the recorded buffers of a tree, also the buffers of the official program.
inline std::map<std::string, Integers> buffers_of(const Tree& tree) {
  std::map<std::string, Integers> all{{"parent", tree.parent},
                                      {"depth", tree.depth},
                                      {"child_rank", tree.rank},
                                      {"draft_row", tree.draft_row},
                                      {"retrieve_indices", leaf_paths(tree)}};
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(tree.max_children() - 1, 1));
  for (std::int64_t node = 0; node < tree.size(); ++node) {
    const auto n = static_cast<std::size_t>(node);
    for (std::int64_t column = 0; column < tree.size(); ++column) {
      all["mask"].push_back(sees(tree, node, column));
    }
    all["mask_bits"].push_back(static_cast<std::int64_t>(tree.ancestors[n]));
    all["first_child"].push_back(tree.child_count(node) > 0 ? tree.child_begin[n] : -1);
    const std::int64_t parent = tree.parent[n];
    const auto p = static_cast<std::size_t>(parent);
    const bool last = node == 0 || tree.rank[n] + 1 == tree.child_count(parent);
    all["next_sibling"].push_back(last ? -1 : node + 1);
    all["official_tree_indices"].push_back(node == 0 ? 0 : 1 + 10 * tree.draft_row[p] + tree.rank[n]);
    Integers earlier;
    std::int64_t ordinal = -1;
    if (node > 0) {
      const Integers parents = tree.expanded_level(tree.depth[p]);
      ordinal = std::find(parents.begin(), parents.end(), parent) - parents.begin();
      for (std::int64_t rank = 0; rank < tree.rank[n]; ++rank) earlier.push_back(tree.child_begin[p] + rank);
    }
    earlier.resize(width, -1);
    all["parent_ordinal_in_level"].push_back(ordinal);
    all["earlier_siblings"].insert(all["earlier_siblings"].end(), earlier.begin(), earlier.end());
  }
  for (std::int64_t depth = 1; depth < tree.max_depth(); ++depth) {
    all["drafter_mask_" + std::to_string(depth - 1)] = drafter_mask(tree, depth);
  }
  return all;
}

inline void compare_tree(const Recorded& recorded, Report& report, const std::string& id, const Tree& tree) {
  std::map<std::string, Integers> buffers = buffers_of(tree);
  report.equal("has parents and masks", recorded.has(id + ".parent") && recorded.has(id + ".mask_bits"),
               true);
  for (const std::string& name : recorded.names(id + ".")) {
    // The official drafter selects rows differently.
    const bool official = name == "official_p_indices" || name.rfind("drafter_select", 0) == 0 ||
                          name.rfind("drafter_repeat", 0) == 0;
    if (!official) report.equal(name, buffers[name], recorded.integers(id + "." + name));
  }
}

inline void replay_trees(const Recorded& recorded, Report& report) {
  for (const Json& scenario : recorded.info().at("cases")) {
    const std::string id = scenario.at("id");
    report.scenario(id);
    const Json file{{"paths", scenario.at("paths")}};
    const Tree tree = parse_tree(file.dump(), id);
    const auto sorted = scenario.at("sorted_paths").get<std::vector<TreePath>>();
    report.equal("sorted_paths", std::vector<TreePath>(tree.paths.begin() + 1, tree.paths.end()) == sorted,
                 true);
    report.equal("n_nodes", tree.size(), scenario.at("n_nodes").get<std::int64_t>());
    report.equal("max_depth", tree.max_depth(), scenario.at("max_depth").get<std::int64_t>());
    compare_tree(recorded, report, id, tree);
  }
}

// The two steps of a dynamic tree, on the host or with operators.
struct Expander {
  std::function<Expansion(const std::vector<Distribution>&, const Doubles&, std::int64_t)> expand;
  std::function<DynamicTree(const Integers&, const Doubles&, const std::vector<Integers>&, std::int64_t,
                            std::int64_t)>
      rerank;
};

class DynamicReplay {
 public:
  DynamicReplay(const Recorded& recorded, const Expander& expander, Report& report)
      : recorded_(recorded), expander_(expander), report_(report) {}

  void run() {
    for (const Json& scenario : recorded_.info().at("cases")) {
      id_ = scenario.at("id");
      report_.scenario(id_);
      replay(scenario);
    }
  }

 private:
  Distribution row_of(const Integers& path, double score) const {
    for (std::size_t row = 0; row < paths_.size(); ++row) {
      if (unpadded(paths_[row]) == path) return rows_[row];
    }
    // Paths of probability 0 need no row: their descendants' scores are -inf whatever it holds.
    if (std::isinf(score)) return rows_[0];
    throw Error(ExitCode::input, id_ + ": no recorded row for a path that is expanded");
  }

  void replay(const Json& scenario) {
    const std::int64_t k = scenario.at("K"), passes = scenario.at("depth");
    rows_ = filtered(recorded_.rows(id_ + ".row_logits"),
                     {scenario.at("temperature"), 1, scenario.at("draft_top_k")});
    paths_.clear();
    const bool has_paths = passes > 0;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      paths_.push_back(has_paths ? recorded_.integers(id_ + ".row_path", row) : Integers{});
    }
    Integers tokens;
    Doubles scores;
    std::vector<Integers> frontiers;
    std::vector<Integers> frontier{{}};  // token paths
    Doubles frontier_scores{0};
    for (std::int64_t pass = 0; pass <= passes; ++pass) {
      std::vector<Distribution> probabilities;
      for (std::size_t slot = 0; slot < frontier.size(); ++slot) {
        probabilities.push_back(row_of(frontier[slot], frontier_scores[slot]));
      }
      const Expansion expansion = expander_.expand(probabilities, frontier_scores, k);
      tokens.insert(tokens.end(), expansion.tokens.begin(), expansion.tokens.end());
      scores.insert(scores.end(), expansion.scores.begin(), expansion.scores.end());
      if (pass > 0 && recorded_.has(id_ + ".frontier_select")) {
        report_.equal("frontier_select of pass " + std::to_string(pass), expansion.frontier,
                      recorded_.integers(id_ + ".frontier_select", static_cast<std::size_t>(pass - 1)));
      }
      if (pass < passes) frontiers.push_back(expansion.frontier);
      std::vector<Integers> next;
      Doubles next_scores;
      for (const std::int64_t candidate : expansion.frontier) {
        const auto c = static_cast<std::size_t>(candidate);
        next.push_back(frontier[static_cast<std::size_t>(candidate / k)]);
        next.back().push_back(expansion.tokens[c]);
        next_scores.push_back(expansion.scores[c]);
      }
      frontier = std::move(next);
      frontier_scores = std::move(next_scores);
    }
    if (recorded_.has(id_ + ".pool_tok"))
      report_.equal("pool_tok", tokens, recorded_.integers(id_ + ".pool_tok"));
    if (recorded_.has(id_ + ".pool_score")) {
      report_.close("pool_score", scores, recorded_.doubles(id_ + ".pool_score"), 1e-4);
    }
    compare(expander_.rerank(tokens, scores, frontiers, k, scenario.at("n_draft")), scores,
            scenario.at("root_token"));
  }

  void compare(const DynamicTree& tree, const Doubles& scores, std::int64_t root) {
    Integers tokens = tree.tokens;
    tokens[0] = root;
    Integers mask;
    for (const std::uint64_t ancestors : tree.ancestors) {
      for (std::size_t column = 0; column < tree.parents.size(); ++column) {
        mask.push_back(static_cast<std::int64_t>(ancestors >> column & 1));
      }
    }
    Doubles kept;
    for (const std::int64_t index : tree.pool_index) kept.push_back(scores[static_cast<std::size_t>(index)]);
    report_.equal("pool_index", tree.pool_index, recorded_.integers(id_ + ".pool_index"));
    report_.equal("tokens", tokens, recorded_.integers(id_ + ".tokens"));
    report_.equal("parent", tree.parents, recorded_.integers(id_ + ".parent"));
    report_.equal("depth", tree.depths, recorded_.integers(id_ + ".depth"));
    report_.equal("mask", mask, recorded_.integers(id_ + ".mask"));
    report_.close("score", kept, recorded_.doubles(id_ + ".score"), 1e-4);
  }

  const Recorded& recorded_;
  const Expander& expander_;
  Report& report_;
  std::string id_;
  std::vector<Distribution> rows_;
  std::vector<Integers> paths_;
};

inline void replay_neighbours(const Recorded& recorded, Report& report) {
  for (const Json& scenario : recorded.info().at("cases")) {
    const std::string id = scenario.at("id");
    report.scenario(id);
    std::vector<float> codebook;
    for (const double value : recorded.doubles(id + ".codebook"))
      codebook.push_back(static_cast<float>(value));
    for (const std::string metric : scenario.at("metrics")) {
      const std::string name = id + "." + metric + ".neighbors";
      const NeighbourTable expected = table_of(recorded, name);
      const Metric kind = metric == "l2_raw" ? Metric::l2 : Metric::cosine;
      if (metric != "l2_raw" && metric != "l2_normalised") {
        throw Error(ExitCode::input, id + ": unknown metric " + metric);
      }
      const NeighbourTable table = nearest_neighbours(codebook, scenario.at("dim"), expected.width, kind);
      for (std::int64_t row = 0; row < expected.codes; ++row) {
        report.equal(metric + ": neighbours of " + std::to_string(row),
                     Integers(table.row(row), table.row(row) + table.width),
                     Integers(expected.row(row), expected.row(row) + expected.width));
      }
    }
    if (!scenario.contains("official_npy")) continue;
    // The official table differs from the exact one in a recorded number of entries.
    const std::string file = scenario.at("official_npy");
    const NeighbourTable official = read_npy_neighbours(recorded.folder() + "/" + file);
    const NeighbourTable exact = nearest_neighbours(codebook, scenario.at("dim"), official.width, Metric::l2);
    std::int64_t differing = 0;
    for (std::size_t i = 0; i < exact.ids.size(); ++i) differing += exact.ids[i] != official.ids.at(i);
    report.equal(file + ": places unlike the exact table", differing,
                 scenario.at("official_positions_differing_from_exact_order").get<std::int64_t>());
  }
}

}  // namespace lamplighter::reference
