#include <algorithm>

#include "base/files.h"
#include "base/format.h"
#include "draft/options/resolve.h"
#include "draft/options/resolve_parts.h"
#include "tree/tree.h"

namespace lamplighter {
namespace {

constexpr const char* kDefaultChain = "chain-4";
// A chain that ends early may be longer: it has no useless nodes to verify.
constexpr const char* kAutoChain = "chain-6";

// Networks that guess a number of tokens at most.
void check_heads(const MethodContext& run, const Tree& tree) {
  const MethodOptions& method = run.options;
  const std::int64_t heads = run.manifest->drafters.at(method.drafter).heads;
  if (tree.max_depth() > heads)
    refuse("tree " + tree_name(method.tree) + " is " + std::to_string(tree.max_depth()) +
           " deep, but drafter " + method.drafter + " has " + counted(heads, "head"));
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

std::string usual_tree(const MethodContext& run) {
  const MethodEntry& entry = run.entry;
  const Manifest& manifest = *run.manifest;
  if (run.options.draft_length == "auto") return kAutoChain;
  const char* preset = run.device == "cuda" ? entry.trees.cuda : entry.trees.cpu;
  if (preset == nullptr) {
    const auto tuned = manifest.trees.find(run.device);
    return tuned != manifest.trees.end() ? join_path(manifest.directory, tuned->second)
                                         : default_tree(run.device, run.batch);
  }
  if (!entry.needs_heads()) return preset;
  const std::int64_t heads = manifest.drafters.at(find_drafter(run)).heads;
  return "chain-" + std::to_string(std::min(preset_tree(preset).max_depth(), heads));
}

void check_tree(const MethodContext& run) {
  const MethodOptions& method = run.options;
  const MethodEntry& entry = run.entry;
  if (method.tree == kDynamicTree) {
    if (!entry.grows_trees())
      refuse("tree: got dynamic, but method " + method.method + " drafts " +
             (entry.drafts_chains() ? "chains" : "fixed trees"));
    return;
  }
  const Tree tree = load_tree(method.tree);
  const std::string name = tree_name(method.tree);
  const bool siblings = tree.max_children() > 1;
  if (tree.drafted() == 0) refuse("tree " + name + " drafts nothing; use method " + kBaseline + " for that");
  if (entry.drafts_chains() && siblings)
    refuse("tree " + name + " has siblings, but method " + method.method + " drafts chains");
  if (entry.longest > 0 && tree.max_depth() > entry.longest)
    refuse("tree: got " + name + ", expected at most chain-" + std::to_string(entry.longest) +
           " for method " + method.method + ", which also verifies a window in the same pass");
  if (entry.tree == TreeKind::multi_candidate &&
      static_cast<std::int64_t>(first_children(tree).size()) <= tree.max_depth())
    refuse("tree " + name + " does not reach its depth along first children, as method " + method.method +
           " needs; fan-3-2-7 does");
  const RuleTraits& rule = traits_of(run.rule);
  if (rule.needs_chains() && siblings)
    refuse("rule " + std::string(rule.name) + " verifies chains, but tree " + name +
           " has siblings; use rule traversal or tree chain-N");
  // Candidates of these trees stand under several nodes, where rules of paths take siblings for independent.
  if (rule.walk == Walk::paths && siblings &&
      (entry.tree == TreeKind::multi_candidate || entry.shares_candidates))
    refuse("rule " + std::string(rule.name) + ": got method " + method.method +
           " and a tree with siblings, expected rule exact");
  if (entry.needs_heads()) check_heads(run, tree);
}

}  // namespace lamplighter
