#include <algorithm>

#include "base/files.h"
#include "propose/lookup/lookahead.h"
#include "propose/options/options.h"
#include "propose/options/resolve.h"
#include "propose/options/resolve_parts.h"

namespace lamplighter {
namespace {

constexpr const char* kDefaultChain = "chain-4";
// A chain that ends where it should may be longer: the rows that it has no use for are not run.
constexpr const char* kAutoChain = "chain-6";
constexpr float kConfidence = 0.4F;
// Windows: on a CPU as many rows, twice the nodes, as products take at the price of two.
constexpr const char *kWindowOnCpu = "chain-5", *kWindowOnCuda = "chain-31";
constexpr const char* kRefinedOnCuda = "chain-7";  // sixteen rows of a guided picture
constexpr const char *kRowsOnCpu = "chain-3", *kRowsOnCuda = "chain-15";
// Three candidates for two places are the published ones.
constexpr const char *kFanOnCpu = "fan-2-1-5", *kFanOnCuda = "fan-3-2-31";

// Where the user names none.
std::string usual_tree(const MethodOptions& method, const MethodEntry& entry, const Manifest& manifest,
                       const std::string& device, int batch) {
  const bool cuda = device == "cuda";
  if (method.draft_length == "auto") return kAutoChain;
  if (entry.tree == TreeKind::dynamic) return kDynamicTree;
  if (entry.needs_heads())
    return "chain-" + std::to_string(std::min<std::int64_t>(4, manifest.drafters.at(method.drafter).heads));
  if (entry.needs_refiner()) return cuda ? kRefinedOnCuda : kWindowOnCpu;
  if (entry.tree == TreeKind::chain) return kDefaultChain;
  if (entry.tree == TreeKind::windows) return cuda ? kRowsOnCuda : kRowsOnCpu;
  if (entry.tree == TreeKind::window) return cuda ? kWindowOnCuda : kWindowOnCpu;
  if (entry.tree == TreeKind::fan && entry.needs_drafter()) return kWindowOnCpu;
  if (entry.tree == TreeKind::fan) return cuda ? kFanOnCuda : kFanOnCpu;
  // A bundle's trees are tuned for a drafter that is a layer.
  if (!entry.needs_layer()) return kDefaultChain;
  const auto tuned = manifest.trees.find(device);
  return tuned != manifest.trees.end() ? join_path(manifest.directory, tuned->second)
                                       : default_tree(device, batch);
}

void resolve_dynamic(MethodOptions& method) {
  if (!method.dynamic_depth) method.dynamic_depth = 4;
  if (!method.dynamic_width) method.dynamic_width = 10;
  const std::int64_t width = *method.dynamic_width, passes = *method.dynamic_depth;
  if (passes * width > kMaxTreeNodes) {
    refuse("tree dynamic: got depth " + std::to_string(passes) + " and width " + std::to_string(width) +
           ", expected a product of at most " + std::to_string(kMaxTreeNodes));
  }
  const std::int64_t pool = width + passes * width * width, most = std::min(pool, kMaxTreeNodes - 1);
  if (!method.dynamic_nodes) method.dynamic_nodes = std::min<std::int64_t>(58, pool);
  if (*method.dynamic_nodes > most) {
    refuse("dynamic_nodes: got " + std::to_string(*method.dynamic_nodes) + ", expected 1 to " +
           std::to_string(most));
  }
}

}  // namespace

std::string default_tree(const std::string& device, std::int64_t batch) {
  constexpr std::int64_t kRows = 150;
  if (device != "cuda") return kDefaultChain;
  const std::int64_t nodes = kRows / (2 * std::max<std::int64_t>(1, batch));
  for (const char* preset : {"lantern-58", "lantern-26"}) {
    if (preset_tree(preset).size() <= nodes) return preset;
  }
  return "chain-" + std::to_string(std::clamp<std::int64_t>(nodes - 1, 1, 6));
}

void resolve_tree(MethodOptions& method, Rule rule, const MethodEntry& entry, const Manifest& manifest,
                  const std::string& device, int batch) {
  if (method.tree.empty()) method.tree = usual_tree(method, entry, manifest, device, batch);
  if (method.tree == kDynamicTree) {
    if (entry.drafts_chains() || entry.keeps_window() || entry.drafts_itself())
      refuse("tree: got dynamic, method " + method.method + " drafts " +
             (entry.drafts_chains() ? "chains" : "fixed trees"));
    return resolve_dynamic(method);
  }
  for (const MethodOption& option : method_options()) {
    if (option.follows == std::string("tree") && is_set(method, option))
      refuse(std::string(option.key) + " needs the tree dynamic, this run has " + method.tree);
  }
  const Tree tree = load_tree(method.tree);
  if (tree.drafted() == 0)
    refuse("tree " + method.tree + " drafts nothing; use method " + kBaseline + " for that");
  if (entry.drafts_chains() && tree.max_children() > 1)
    refuse("tree " + method.tree + " has siblings, method " + method.method + " drafts chains");
  if (entry.proposer == &make_lookahead && tree.max_depth() > longest_lookahead())
    refuse("tree: got " + method.tree + ", expected at most chain-" + std::to_string(longest_lookahead()) +
           " for method " + method.method + ", which verifies a window beside its guesses");
  resolve_fan(method, rule, entry, tree, manifest);
  if (rule == Rule::block && tree.max_children() > 1)
    refuse("rule block judges chains, tree " + method.tree + " has siblings; use traversal or chain-N");
  // A file is read once: what is drawn with it carries the tree.
  const bool own = std::any_of(manifest.trees.begin(), manifest.trees.end(), [&](const auto& tuned) {
    return method.tree == join_path(manifest.directory, tuned.second);
  });
  if (is_tree_file(method.tree) && !own) method.tree = embed_tree(tree, method.tree);
}

void check_heads(const MethodOptions& method, Rule rule, const MethodEntry& entry, const Manifest& manifest) {
  const std::int64_t heads = manifest.drafters.at(method.drafter).heads;
  if (method.tree == kDynamicTree)
    refuse("tree: got dynamic, method " + method.method + " drafts fixed trees");
  const Tree tree = load_tree(method.tree);
  if (tree.max_depth() > heads)
    refuse("tree " + tree_name(method.tree) + " is " + std::to_string(tree.max_depth()) + " deep, drafter " +
           method.drafter + " has " + std::to_string(heads) + " heads");
  if (entry.shares_candidates() && rule == Rule::traversal && tree.max_children() > 1)
    refuse("rule traversal: got method " + method.method + " and a tree with siblings, expected rule exact");
}

void check_length(const MethodOptions& method, const MethodEntry& entry) {
  if (method.draft_length != "auto" ||
      (entry.needs_drafter() && !entry.keeps_window() && !entry.needs_heads() && !entry.needs_refiner()))
    return;
  refuse("draft_length: got auto, expected full for method " + method.method);
}

void resolve_length(MethodOptions& method) {
  const bool ends = method.draft_length == "auto";
  if (method.draft_confidence && !ends) refuse("draft_confidence needs draft_length auto");
  if (!ends) return;
  if (method.tree == kDynamicTree || load_tree(method.tree).max_children() > 1)
    refuse("draft_length auto needs a chain, tree " + tree_name(method.tree) + " has siblings");
  if (!method.draft_confidence) method.draft_confidence = kConfidence;
}

}  // namespace lamplighter
