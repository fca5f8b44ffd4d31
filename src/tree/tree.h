#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace lamplighter {

// Child ranks from the root: {0, 2} is the third child of the root's first child; {} is the root.
using TreePath = std::vector<std::int64_t>;

// Masks have one bit per node. Node 0 is the root.
constexpr std::int64_t kMaxTreeNodes = 64;

// A static draft tree. Node 0 is the root, the last committed token. Drafted nodes follow, sorted by (depth,
// path): parents come before children, and the nodes of a level and the children of a node are contiguous.
struct Tree {
  std::vector<TreePath> paths;       // [N]
  std::vector<std::int64_t> parent;  // [N], root -1
  std::vector<std::int64_t> rank;    // [N] index among the children of its parent; root 0
  std::vector<std::int64_t> depth;   // [N] root 0
  std::vector<std::int64_t>
      child_begin;  // [N + 1] children of n: nodes child_begin[n] .. child_begin[n + 1] - 1
  std::vector<std::uint64_t> ancestors;   // [N] bit j of entry n: j is n or an ancestor of n
  std::vector<std::int64_t> level_begin;  // [max_depth + 2] nodes of depth d: level_begin[d] .. [d + 1] - 1
  std::vector<std::int64_t> expanded;     // nodes with children, in node order (breadth first)
  std::vector<std::int64_t> draft_row;    // [N] position in `expanded`, -1 for leaves

  std::int64_t size() const { return static_cast<std::int64_t>(parent.size()); }  // with the root
  std::int64_t drafted() const { return size() - 1; }
  std::int64_t max_depth() const { return depth.back(); }
  std::int64_t max_children() const;
  std::int64_t child_count(std::int64_t node) const;
  std::vector<std::int64_t> level(std::int64_t of_depth) const;           // nodes of a depth
  std::vector<std::int64_t> expanded_level(std::int64_t of_depth) const;  // only those with children
  std::vector<std::int64_t> nodes_to(std::int64_t node) const;            // root .. node
};

// Builds a tree from drafted nodes in any order; no nodes give the root alone. Throws Error(code) with
// `where` and the path unless every parent is listed, sibling ranks are 0, 1, 2, ..., no node is listed twice
// and there are at most 63.
Tree make_tree(std::vector<TreePath> paths, const std::string& where = "tree",
               ExitCode code = ExitCode::usage);

// Presets: chain-N (N = 0..63 drafted nodes in a line), lantern-26 and lantern-58 (the static trees of EAGLE
// and LANTERN, root included), fan-K-S-N (a chain of N nodes; at its first S depths every node has K
// candidates; K 2 to 9, S >= 1, N >= S). Throws Error(usage) for other names.
Tree preset_tree(const std::string& name);
bool is_tree_preset(const std::string& name);
std::vector<std::string> tree_presets();  // the names without numbers of their own

// The path along first children from the root to a leaf: node d at depth d.
std::vector<std::int64_t> first_children(const Tree& tree);

// Parses a tree file: {"paths": [[0], [1], [0, 0]], "about": anything}; `about` is optional. Throws
// Error(code).
Tree parse_tree(std::string_view text, const std::string& where, ExitCode code = ExitCode::input);

// Loads a preset by name, the text of a tree file, or a file by path. Throws Error (usage for names, input
// for files).
Tree load_tree(const std::string& tree);

// Whether load_tree would read a file.
bool is_tree_file(const std::string& tree);

// embed_tree: text of a tree with its name. tree_name: that name; any other tree is its own name.
std::string embed_tree(const Tree& tree, const std::string& name);
std::string tree_name(const std::string& tree);

// The inverse of parse_tree. A null `about` is omitted.
Json tree_to_json(const Tree& tree, const Json& about = nullptr);

}  // namespace lamplighter
