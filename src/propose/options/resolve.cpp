#include "propose/options/resolve.h"

#include <algorithm>
#include <sstream>

#include "acceptance/rules.h"
#include "base/files.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "propose/lookup/lookahead.h"
#include "propose/options/options.h"
#include "propose/registry.h"
#include "tree/tree.h"

namespace lamplighter {
namespace {

constexpr const char* kDefaultChain = "chain-4";
// A chain that ends where it should may be longer: the rows that it has no use for are not run.
constexpr const char* kAutoChain = "chain-6";
constexpr float kConfidence = 0.4F;
// Windows: on a CPU as many rows, twice the nodes, as products take at the price of two.
constexpr const char *kWindowOnCpu = "chain-5", *kWindowOnCuda = "chain-31";
constexpr const char *kRowsOnCpu = "chain-3", *kRowsOnCuda = "chain-15";
// Three candidates for two places are the published ones.
constexpr std::int64_t kFront = 2;
constexpr const char *kFanOnCpu = "fan-2-1-5", *kFanOnCuda = "fan-3-2-31";

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ExitCode::usage, message);
}

// A method that drafts nothing has no use for options.
void check_plain(const MethodOptions& method) {
  for (const MethodOption& option : method_options()) {
    if (!is_set(method, option)) continue;
    refuse("method " + method.method + " drafts nothing: trees, rules and their options need one of " +
           method_names(true));
  }
}

// What only rules that borrow read may stand in other runs where it says nothing.
void check_unborrowed(const MethodOptions& method) {
  const auto refuse_where = [&](bool told, const char* key) {
    if (told) refuse(std::string(key) + " needs the rule lantern or lantern++, this run has " + method.rule);
  };
  refuse_where(method.k.value_or(0) != 0, "relax_k");
  refuse_where(!method.residual.empty() && residual_from(method.residual) != Residual::paper, "residual");
  refuse_where(!method.neighbours.empty(), "neighbours");
}

// The weights of Cool-SD: nu as published, about 2 for the first drafted token.
void resolve_cool(MethodOptions& method) {
  if (!method.delta) method.delta = 4.0F;
  if (!method.mu) method.mu = 0.0F;
  if (!method.nu) method.nu = 0.7F;
}

// As Medusa's program calls it.
void resolve_typical(MethodOptions& method) {
  if (!method.epsilon) method.epsilon = 0.09F;
  if (!method.alpha) method.alpha = 0.3F;
}

// As published.
void resolve_grouped(MethodOptions& method) {
  if (!method.group_gap) method.group_gap = 0.15F;
  if (!method.group_distance) method.group_distance = 0.5F;
}

// Half as strict as the exact rule.
void resolve_lenient(MethodOptions& method) {
  if (!method.lenience) method.lenience = 0.5F;
}

// What one rule reads is refused where another is asked for.
void check_bounds(const MethodOptions& method, Rule rule) {
  const auto refuse_where = [&](bool wrong, const char* key, const char* rules) {
    if (wrong) refuse(std::string(key) + " needs the rule " + rules + ", this run has " + method.rule);
  };
  if (method.delta && !method.lambda.empty())
    refuse("delta and lambda exclude each other: delta belongs to lantern and cool, lambda to lantern++");
  const bool cool = rule == Rule::cool;
  refuse_where(method.delta && rule != Rule::lantern && !cool, "delta", "lantern or cool");
  refuse_where(!method.lambda.empty() && rule != Rule::lantern_plus, "lambda", "lantern++");
  refuse_where(method.mu && !cool, "mu", "cool");
  refuse_where(method.nu && !cool, "nu", "cool");
  const bool typical = rule == Rule::typical;
  refuse_where(method.epsilon && !typical, "epsilon", "typical");
  refuse_where(method.alpha && !typical, "alpha", "typical");
  refuse_where(method.lenience && rule != Rule::lenient, "lenience", "lenient");
  const bool grouped = rule == Rule::grouped;
  refuse_where(method.group_gap && !grouped, "group_gap", "grouped");
  refuse_where(method.group_distance && !grouped, "group_distance", "grouped");
  if (rule == Rule::lantern && method.delta.value_or(0) > 1) {
    std::ostringstream delta;
    delta << *method.delta;
    refuse("delta: got " + delta.str() + ", expected 0 to 1 for the rule lantern");
  }
}

void resolve_bounds(MethodOptions& method, Rule rule, std::int64_t codes) {
  check_bounds(method, rule);
  const bool delta = rule == Rule::lantern, lambda = rule == Rule::lantern_plus;
  if (!borrows(rule)) check_unborrowed(method);
  if (rule == Rule::cool) resolve_cool(method);
  if (rule == Rule::typical) resolve_typical(method);
  if (rule == Rule::grouped) resolve_grouped(method);
  if (rule == Rule::lenient) resolve_lenient(method);
  if (delta && !method.delta) method.delta = 0.05F;
  if (lambda && method.lambda.empty()) method.lambda = {2.0F};
  if (!method.k) method.k = delta ? std::max<std::int64_t>(1, codes / 32) : lambda ? 10 : 0;
  if (*method.k >= codes) {
    refuse("relax_k: got " + std::to_string(*method.k) + ", expected 0.." + std::to_string(codes - 1) +
           ": there are " + std::to_string(codes) + " codes");
  }
}

// Options of methods with a `need` that this one has not.
void refuse_option(const MethodOptions& method, const std::string& need, const std::string& of) {
  for (const MethodOption& option : method_options()) {
    if (option.needs == need && is_set(method, option))
      refuse(std::string(option.key) + " needs " + of + ", this run has " + method.method);
  }
}

void resolve_window(MethodOptions& method, const MethodEntry& entry) {
  if (method.front && !(entry.keeps_window() && entry.needs_drafter()))
    refuse("front needs the method eagle+sjd or flash+sjd, this run has " + method.method);
  const Rule rule = rule_from(method.rule);
  const bool released = rule == Rule::official_pac;
  if (released && (entry.tree != TreeKind::fan || entry.needs_drafter()))
    refuse("rule official-pac needs the method sjd-pac, this run has " + method.method);
  if (entry.keeps_window()) {
    if (method.init.empty()) method.init = released ? "uniform" : "repeat";
    if (released && method.init != "uniform")
      refuse("init: got " + method.init + ", expected uniform: rule official-pac needs it");
    if (released && method.tail == "fresh")
      refuse("tail: got fresh, expected keep: rule official-pac needs it");
    if (method.init == "sample" && entry.opens_rows())
      refuse("init: got sample, expected uniform, random, repeat or above for method " + method.method);
    const bool paths = rule == Rule::block || rule == Rule::traversal;
    if (method.tail.empty()) method.tail = paths ? "fresh" : "keep";
    if (method.tail == "fresh" && method.method == "scd")
      refuse("tail: got fresh, expected keep for method scd; sjd has both");
    // Drafts that stay depend on those before them, and whole paths are judged by the product of their laws.
    if (paths && method.tail != "fresh")
      refuse("tail: got " + method.tail + ", expected fresh: rule " + method.rule + " needs it");
    return;
  }
  refuse_option(method, "window", "a method with a window of drafts");
}

// As deep as there are heads.
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

// Whether chains end early.
void resolve_length(MethodOptions& method, const MethodEntry& entry) {
  const bool ends = method.draft_length == "auto";
  if (method.draft_confidence && !ends) refuse("draft_confidence needs draft_length auto");
  if (!ends) return;
  if (entry.keeps_window() || entry.needs_heads())
    refuse("draft_length: got auto, expected full for method " + method.method);
  if (method.tree == kDynamicTree || load_tree(method.tree).max_children() > 1)
    refuse("draft_length auto needs a chain, tree " + tree_name(method.tree) + " has siblings");
  if (!method.draft_confidence) method.draft_confidence = kConfidence;
}

void check_calls(const MethodEntry& entry, const Manifest& manifest) {
  if (has_calls(entry, manifest)) return;
  throw Error(ExitCode::bundle, std::string("method ") + entry.name + ": the target of bundle " +
                                    manifest.directory + " has no " + entry.calls +
                                    ", it was exported before there was one; export the bundle again");
}

// Which part of the target drafts.
void resolve_self(MethodOptions& method, const MethodEntry& entry, const Manifest& manifest) {
  if (!entry.drafts_itself()) return refuse_option(method, "self", "the method self");
  const std::int64_t layers = manifest.cache.layers;
  if (!method.draft_layers) method.draft_layers = std::max<std::int64_t>(1, layers / 2);
  if (*method.draft_layers > layers)
    refuse("draft_layers: got " + std::to_string(*method.draft_layers) + ", expected 1 to " +
           std::to_string(layers) + ", the layers of the target");
  if (!manifest.grids.empty() && !manifest.grids.front().row_end.empty() && method.draft_window)
    refuse("draft_window needs rows of codes alone, those of bundle " + manifest.directory +
           " end with a token");
}

// Rows that are drawn side by side.
void check_rows(const MethodOptions& method, const Manifest& manifest) {
  if (!manifest.grids.empty() && !manifest.grids.front().row_end.empty())
    refuse("method " + method.method + " needs rows of codes alone, those of bundle " + manifest.directory +
           " end with a token; sjd is for any bundle");
}

// The same where nothing is judged.
void resolve_rows(MethodOptions& method, const Manifest& manifest) {
  for (const MethodOption& option : method_options()) {
    if (is_set(method, option) && !has_use(method, option))
      refuse(std::string(option.key) + " needs a method that drafts, this run has " + method.method);
  }
  check_options(method);
  check_rows(method, manifest);
  if (method.zipar.empty()) method.zipar = "clean";
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

// The window is the chain of first candidates. The others of a place stand under several nodes, where
// traversal takes siblings for independent of each other.
void resolve_fan(MethodOptions& method, Rule rule, const MethodEntry& entry, const Tree& tree,
                 const Manifest& manifest) {
  if (entry.tree != TreeKind::fan) return;
  if (entry.needs_drafter()) {
    const std::int64_t heads = manifest.drafters.at(method.drafter).heads;
    if (!method.front)
      method.front = std::min(heads > 0 ? std::min(kFront, heads) : kFront, tree.max_depth());
    if (heads > 0 && *method.front > heads)
      refuse("front: got " + std::to_string(*method.front) + ", drafter " + method.drafter + " has " +
             std::to_string(heads) + " heads");
  }
  if (method.front.value_or(0) > tree.max_depth())
    refuse("front: got " + std::to_string(*method.front) + ", expected at most the " +
           std::to_string(tree.max_depth()) + " places of the tree " + method.tree);
  if (static_cast<std::int64_t>(first_children(tree).size()) <= tree.max_depth())
    refuse("tree " + method.tree + " is deepest elsewhere than below first children; method " +
           method.method + " needs a chain of them, such as fan-3-2-7");
  if (rule == Rule::traversal && tree.max_children() > 1)
    refuse("rule traversal: got method " + method.method + " and a tree with siblings, expected rule exact");
}

void resolve_tree(MethodOptions& method, Rule rule, const MethodEntry& entry, const Manifest& manifest,
                  const std::string& device, int batch) {
  if (method.tree.empty() && method.draft_length == "auto") method.tree = kAutoChain;
  if (method.tree.empty() && entry.tree == TreeKind::dynamic) method.tree = kDynamicTree;
  // A bundle's trees are tuned for a drafter that is a layer.
  if (method.tree.empty() && entry.needs_heads())
    method.tree =
        "chain-" + std::to_string(std::min<std::int64_t>(4, manifest.drafters.at(method.drafter).heads));
  const bool other = entry.tree == TreeKind::fixed && !entry.needs_layer();
  if (method.tree.empty() && (entry.tree == TreeKind::chain || other)) method.tree = kDefaultChain;
  if (method.tree.empty() && entry.tree == TreeKind::windows)
    method.tree = device == "cuda" ? kRowsOnCuda : kRowsOnCpu;
  if (method.tree.empty() && entry.tree == TreeKind::window)
    method.tree = device == "cuda" ? kWindowOnCuda : kWindowOnCpu;
  if (method.tree.empty() && entry.tree == TreeKind::fan && entry.needs_drafter()) method.tree = kWindowOnCpu;
  if (method.tree.empty() && entry.tree == TreeKind::fan)
    method.tree = device == "cuda" ? kFanOnCuda : kFanOnCpu;
  if (method.tree.empty()) {
    const auto tuned = manifest.trees.find(device);
    method.tree = tuned != manifest.trees.end() ? join_path(manifest.directory, tuned->second)
                                                : default_tree(device, batch);
  }
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

void check_children(const MethodOptions& method, const MethodEntry& entry, Rule rule, Residual residual) {
  const bool top = method.children == "top";
  const bool draws = (entry.needs_drafter() && !entry.keeps_window()) || entry.drafts_itself();
  if (!draws && method.children != entry.children)
    refuse("children: got " + method.children + ", expected " + entry.children + " for method " +
           method.method);
  if (method.tree == kDynamicTree && !top)
    refuse("children: got " + method.children +
           ", expected top: the tree dynamic expands the most probable ones");
  if (top && (rule == Rule::traversal || rule == Rule::block))
    refuse("children: got top, expected sampled: rule " + method.rule + " needs it");
  const bool official_top =
      residual == Residual::official_dynamic || residual == Residual::official_lumina_dynamic;
  if (is_official(residual) && official_top != top)
    refuse("residual " + method.residual + " needs children " + (official_top ? "top" : "sampled"));
}

}  // namespace

Rule rule_of(const MethodOptions& method) {
  const MethodEntry& entry = find_method(method.method);
  if (!method.rule.empty()) return rule_from(method.rule);
  return method.lenience && entry.rule == Rule::exact ? Rule::lenient : entry.rule;
}

void resolve_drafter(MethodOptions& method, const std::string& kind, const Manifest& manifest) {
  std::string known, first;
  for (const auto& [name, entry] : manifest.drafters) {
    if (entry.kind != kind) continue;
    known += (known.empty() ? "" : ", ") + name;
    if (first.empty() || name == manifest.first_drafter) first = name;
  }
  if (known.empty()) {
    throw Error(ExitCode::bundle, "method " + method.method + ": bundle " + manifest.directory +
                                      " has no drafter of kind " + kind +
                                      "; add one with python -m models.export " +
                                      (kind == "model"        ? "draft-model"
                                       : kind == "eagle"      ? "drafter"
                                       : kind == "continuous" ? "mar --drafter"
                                                              : kind) +

                                      (kind == "continuous" ? "" : ", or use method sjd, which needs none"));
  }
  if (method.drafter.empty()) method.drafter = first;
  const auto found = manifest.drafters.find(method.drafter);
  if (found == manifest.drafters.end() || found->second.kind != kind)
    refuse("drafter: got '" + method.drafter + "', this bundle has " + known);
}

std::string default_tree(const std::string& device, std::int64_t batch) {
  constexpr std::int64_t kRows = 150;
  if (device != "cuda") return kDefaultChain;
  const std::int64_t nodes = kRows / (2 * std::max<std::int64_t>(1, batch));
  for (const char* preset : {"lantern-58", "lantern-26"}) {
    if (preset_tree(preset).size() <= nodes) return preset;
  }
  return "chain-" + std::to_string(std::clamp<std::int64_t>(nodes - 1, 1, 6));
}

MethodOptions resolve_method(const MethodOptions& options, const Manifest& manifest,
                             const std::string& device, int batch) {
  if (manifest.is_continuous()) return resolve_continuous(options, manifest);
  MethodOptions method = options;
  const MethodEntry& entry = find_method(method.method);
  if (entry.is_continuous())
    refuse("method " + method.method + " draws continuous tokens, those of bundle " + manifest.directory +
           " are codes");
  for (const char* need : {"steps", "passes", "continuous"})
    refuse_option(method, need, "a bundle of continuous tokens");
  if (!entry.drafts()) {
    check_plain(method);
    return method;
  }
  if (!entry.judges()) {
    resolve_rows(method, manifest);
    return method;
  }
  refuse_option(method, "rows", "the method zipar");
  if (!entry.opens_rows()) refuse_option(method, "ahead", "the method zipar, zipar+sjd or pjd");
  const Rule rule = rule_of(method);
  method.rule = to_string(rule);
  if (method.children.empty()) method.children = method.tree == kDynamicTree ? "top" : entry.children;
  if (entry.needs_drafter()) {
    if (method.draft_guidance.empty()) method.draft_guidance = "combined";
  } else {
    const std::string none = ", method " + method.method + " has no drafter";
    if (!method.drafter.empty()) refuse("drafter: got " + method.drafter + none);
    if (!method.draft_guidance.empty()) refuse("draft_guidance: got " + method.draft_guidance + none);
  }
  check_options(method);
  resolve_window(method, entry);
  if (entry.opens_rows()) check_rows(method, manifest);
  check_calls(entry, manifest);
  resolve_self(method, entry, manifest);
  if (entry.needs_drafter()) resolve_drafter(method, entry.drafter, manifest);
  resolve_bounds(method, rule, manifest.tokens.codebook_size);
  if (method.residual.empty()) method.residual = to_string(Residual::paper);
  const Residual residual = residual_from(method.residual);
  resolve_tree(method, rule, entry, manifest, device, batch);
  check_children(method, entry, rule, residual);
  if (entry.needs_heads()) check_heads(method, rule, entry, manifest);
  resolve_length(method, entry);
  return method;
}

}  // namespace lamplighter
