#pragma once

#include <cstdint>
#include <vector>

#include "tree/tree.h"

namespace lamplighter {

// All trees of up to `most` nodes, with the root.
inline std::vector<Tree> all_trees(std::int64_t most) {
  std::vector<Tree> trees{make_tree({})};
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const Tree smaller = trees[i];
    if (smaller.size() == most) continue;
    // A larger tree is built once: by adding its last node.
    for (std::int64_t node = 0; node < smaller.size(); ++node) {
      std::vector<TreePath> paths(smaller.paths.begin() + 1, smaller.paths.end());
      TreePath path = smaller.paths[static_cast<std::size_t>(node)];
      path.push_back(smaller.child_count(node));
      paths.push_back(path);
      Tree larger = make_tree(paths);
      if (larger.paths.back() == path) trees.push_back(std::move(larger));
    }
  }
  return trees;
}

}  // namespace lamplighter
