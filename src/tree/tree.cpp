#include "tree/tree.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "base/files.h"
#include "base/format.h"
#include "base/message.h"
#include "base/utf8.h"

namespace lamplighter {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

std::string to_text(const TreePath& path) {
  std::string text;
  for (const std::int64_t rank : path) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return "[" + text + "]";
}

bool by_depth_and_path(const TreePath& a, const TreePath& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Nodes `begin` to `end` - 1.
std::vector<std::int64_t> range(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> nodes;
  for (std::int64_t node = begin; node < end; ++node) nodes.push_back(node);
  return nodes;
}

// Throws unless the sorted paths form a tree.
void check_paths(const std::vector<TreePath>& paths, const std::string& where, ExitCode code) {
  const auto reject = [&](const TreePath& path, const std::string& why) {
    throw Error(code, where + ": path " + to_text(path) + ": " + why);
  };
  if (paths.size() >= at(kMaxTreeNodes)) {
    throw Error(code, where + ": got " + counted(paths.size(), "drafted node") + ", expected at most " +
                          std::to_string(kMaxTreeNodes - 1));
  }
  const auto listed = [&](const TreePath& path) {
    return path.empty() || std::binary_search(paths.begin(), paths.end(), path, by_depth_and_path);
  };
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const TreePath& path = paths[i];
    if (path.empty()) reject(path, "is the root, which is not listed");
    if (*std::min_element(path.begin(), path.end()) < 0) reject(path, "ranks start at 0");
    if (i > 0 && path == paths[i - 1]) reject(path, "is listed twice");
    const TreePath above(path.begin(), path.end() - 1);
    if (!listed(above)) reject(path, "its parent " + to_text(above) + " is missing");
    if (path.back() == 0) continue;
    TreePath before = path;
    --before.back();
    if (!listed(before)) reject(path, "its earlier sibling " + to_text(before) + " is missing");
  }
}

// Builds a tree from breadth-first child counts: entry n counts the children of node n; later nodes have
// none.
Tree from_child_counts(const std::vector<std::int64_t>& counts) {
  std::vector<TreePath> paths{{}};
  for (std::size_t node = 0; node < counts.size(); ++node) {
    for (std::int64_t rank = 0; rank < counts[node]; ++rank) {
      TreePath path = paths[node];
      path.push_back(rank);
      paths.push_back(std::move(path));
    }
  }
  paths.erase(paths.begin());
  return make_tree(std::move(paths));
}

// Parses the numbers of NAME-A-B..: one or two digits without leading zeros. Returns nothing for other names.
std::vector<std::int64_t> numbers_of(const std::string& name, const std::string& kind, std::size_t count) {
  std::vector<std::int64_t> numbers;
  std::istringstream parts(name);
  std::string part;
  if (!std::getline(parts, part, '-') || part != kind || name.back() == '-') return {};
  while (std::getline(parts, part, '-')) {
    const bool plain = !part.empty() && part.size() <= 2 &&
                       part.find_first_not_of("0123456789") == std::string::npos &&
                       (part.size() == 1 || part[0] != '0');
    if (!plain) return {};
    numbers.push_back(std::stoll(part));
  }
  return numbers.size() == count ? numbers : std::vector<std::int64_t>();
}

// Nodes of fan-K-S-N, without a limit on their number.
std::vector<TreePath> fan_paths(std::int64_t candidates, std::int64_t branching, std::int64_t length) {
  std::vector<TreePath> paths, level{{}};
  for (std::int64_t depth = 1; depth <= length; ++depth) {
    std::vector<TreePath> next;
    for (const TreePath& path : level) {
      for (std::int64_t rank = 0; rank < (depth <= branching ? candidates : 1); ++rank) {
        next.push_back(path);
        next.back().push_back(rank);
      }
      if (depth > branching) break;  // then only the first candidate continues
    }
    paths.insert(paths.end(), next.begin(), next.end());
    if (static_cast<std::int64_t>(paths.size()) >= kMaxTreeNodes) break;
    level = std::move(next);
  }
  return paths;
}

// Paths of a preset with numbers in its name; nothing for other names.
std::optional<std::vector<TreePath>> described_paths(const std::string& name) {
  if (const auto chain = numbers_of(name, "chain", 1); !chain.empty()) return fan_paths(1, 0, chain[0]);
  const auto fan = numbers_of(name, "fan", 3);
  if (fan.empty() || fan[0] < 2 || fan[0] > 9 || fan[1] < 1 || fan[2] < fan[1]) return std::nullopt;
  return fan_paths(fan[0], fan[1], fan[2]);
}

bool fits(const std::vector<TreePath>& paths) {
  return static_cast<std::int64_t>(paths.size()) < kMaxTreeNodes;
}

bool is_text(const std::string& tree) {
  return !tree.empty() && tree.front() == '{';
}

}  // namespace

std::int64_t Tree::max_children() const {
  std::int64_t most = 0;
  for (std::int64_t node = 0; node < size(); ++node) most = std::max(most, child_count(node));
  return most;
}

std::int64_t Tree::child_count(std::int64_t node) const {
  return child_begin[at(node) + 1] - child_begin[at(node)];
}

std::vector<std::int64_t> Tree::level(std::int64_t of_depth) const {
  return range(level_begin[at(of_depth)], level_begin[at(of_depth) + 1]);
}

std::vector<std::int64_t> Tree::expanded_level(std::int64_t of_depth) const {
  std::vector<std::int64_t> nodes;
  for (const std::int64_t node : expanded) {
    if (depth[at(node)] == of_depth) nodes.push_back(node);
  }
  return nodes;
}

std::vector<std::int64_t> Tree::nodes_to(std::int64_t node) const {
  std::vector<std::int64_t> nodes;
  for (; node >= 0; node = parent[at(node)]) nodes.push_back(node);
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

Tree make_tree(std::vector<TreePath> paths, const std::string& where, ExitCode code) {
  std::sort(paths.begin(), paths.end(), by_depth_and_path);
  check_paths(paths, where, code);
  paths.insert(paths.begin(), TreePath{});

  Tree tree;
  std::map<TreePath, std::int64_t> node_of;
  std::vector<std::int64_t> counts(paths.size());
  for (const TreePath& path : paths) {
    const std::int64_t node = tree.size();
    node_of[path] = node;
    const bool root = path.empty();
    const std::int64_t parent = root ? -1 : node_of[TreePath(path.begin(), path.end() - 1)];
    tree.parent.push_back(parent);
    tree.rank.push_back(root ? 0 : path.back());
    tree.depth.push_back(static_cast<std::int64_t>(path.size()));
    tree.ancestors.push_back((root ? 0 : tree.ancestors[at(parent)]) | std::uint64_t{1} << node);
    if (!root) ++counts[at(parent)];
    if (tree.level_begin.size() == path.size()) tree.level_begin.push_back(node);
  }
  tree.level_begin.push_back(tree.size());
  tree.child_begin.push_back(1);
  for (std::int64_t node = 0; node < tree.size(); ++node) {
    const bool leaf = counts[at(node)] == 0;
    tree.child_begin.push_back(tree.child_begin.back() + counts[at(node)]);
    tree.draft_row.push_back(leaf ? -1 : static_cast<std::int64_t>(tree.expanded.size()));
    if (!leaf) tree.expanded.push_back(node);
  }
  tree.paths = std::move(paths);
  return tree;
}

std::vector<std::string> tree_presets() {
  return {"lantern-26", "lantern-58"};
}

bool is_tree_preset(const std::string& name) {
  const std::vector<std::string> names = tree_presets();
  const auto paths = described_paths(name);
  return std::find(names.begin(), names.end(), name) != names.end() || (paths && fits(*paths));
}

Tree preset_tree(const std::string& name) {
  if (name == "lantern-26") {  // mc_sim_7b_63 of EAGLE-1
    return from_child_counts({4, 3, 2, 2, 1, 3, 2, 2, 1, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2});
  }
  if (name == "lantern-58") {  // naive_extend_57 of LANTERN
    return from_child_counts({5, 4, 3, 3, 2, 1, 4, 3, 3, 2, 2, 1, 0, 1, 0, 0, 0, 0, 0, 4, 3, 2,
                              1, 2, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 3, 2, 0, 0, 2, 1, 0, 1});
  }
  auto paths = described_paths(name);
  if (!paths || !fits(*paths)) {
    throw Error(ExitCode::usage, "tree \"" + excerpt_of(name) + "\": expected chain-1 to chain-" +
                                     std::to_string(kMaxTreeNodes - 1) +
                                     ", lantern-26, lantern-58, fan-K-S-N (at most " +
                                     std::to_string(kMaxTreeNodes - 1) + " nodes), dynamic or a file");
  }
  return make_tree(std::move(*paths));
}

std::vector<std::int64_t> first_children(const Tree& tree) {
  std::vector<std::int64_t> nodes{0};
  while (tree.child_count(nodes.back()) > 0) nodes.push_back(tree.child_begin[at(nodes.back())]);
  return nodes;
}

Tree parse_tree(std::string_view text, const std::string& where, ExitCode code) {
  const Json json = parse_json(text, where, code);
  JsonReader reader(json, where, code);
  const Json& entries = reader.value("paths");
  if (reader.has("about")) reader.value("about");
  reader.finish();
  if (!entries.is_array()) reader.reject("paths", "a list of paths, such as [[0], [1], [0, 0]]");
  std::vector<TreePath> paths;
  for (const Json& entry : entries) {
    TreePath path;
    const std::string here =
        where + ": paths[" + std::to_string(paths.size()) + "]: got " + shorten(entry.dump(), 60);
    if (!entry.is_array()) throw Error(code, here + ", expected a list of child ranks");
    for (const Json& rank : entry) {
      if (!rank.is_number_unsigned() || rank.get<std::uint64_t>() >= at(kMaxTreeNodes)) {
        throw Error(code, here + ", expected child ranks from 0 to " + std::to_string(kMaxTreeNodes - 2));
      }
      path.push_back(rank.get<std::int64_t>());
    }
    paths.push_back(std::move(path));
  }
  return make_tree(std::move(paths), where, code);
}

Tree load_tree(const std::string& tree) {
  if (is_text(tree)) return parse_tree(tree, "tree");
  // preset_tree rejects other names without a path and lists the presets.
  if (is_tree_preset(tree) || !is_tree_file(tree)) return preset_tree(tree);
  return parse_tree(read_file(tree, ExitCode::input, limits::kTree), tree);
}

bool is_tree_file(const std::string& tree) {
  return !is_text(tree) && tree.find_first_of("/.") != std::string::npos;
}

std::string embed_tree(const Tree& tree, const std::string& name) {
  return tree_to_json(tree, encode_utf8(decode_utf8(name))).dump();  // a path may contain invalid UTF-8
}

std::string tree_name(const std::string& tree) {
  if (!is_text(tree)) return tree;
  const Json json = parse_json(tree, "tree", ExitCode::input);
  return json.contains("about") && json.at("about").is_string() ? json.at("about").get<std::string>()
                                                                : "given";
}

Json tree_to_json(const Tree& tree, const Json& about) {
  Json json;
  json["paths"] = std::vector<TreePath>(tree.paths.begin() + 1, tree.paths.end());
  if (!about.is_null()) json["about"] = about;
  return json;
}

}  // namespace lamplighter
