#include <algorithm>

#include "base/suggestion.h"
#include "draft/options/resolve.h"
#include "draft/options/tables.h"
#include "tree/tree.h"

namespace lamplighter {

using namespace option_rows;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kDynamic = "Dynamic trees";

bool verifies(const Run& run) {
  return run.entry.verifies();
}
bool borrows(const Run& run) {
  return verifies(run) && traits_of(run.rule).borrows();
}
bool has_drafter(const Run& run) {
  return run.entry.needs_drafter();
}
bool drafts_itself(const Run& run) {
  return run.entry.drafts_itself();
}
bool has_rule(const Run& run) {
  return verifies(run) || run.entry.is_continuous();
}
bool verifies_drafter(const Run& run) {
  return verifies(run) && has_drafter(run);
}
bool ends_early(const Run& run) {
  return verifies(run) && run.options.draft_length == "auto";
}
bool has_dynamic_tree(const Run& run) {
  const bool by_default = run.options.tree.empty() && run.entry.tree == TreeKind::dynamic;
  return verifies(run) && (by_default || run.options.tree == kDynamicTree);
}
// Windows with one candidate at every position, and dynamic trees.
bool adapts(const Run& run) {
  const MethodEntry& entry = run.entry;
  const bool window = entry.renews_drafts() && entry.drafts_chains() && !entry.is_row_parallel();
  return window || (entry.grows_trees() && has_dynamic_tree(run));
}

std::string rule_help() {
  std::string lossless, lossy;
  for (const RuleTraits& rule : kRules) {
    std::string& names = rule.lossy() ? lossy : lossless;
    names += (names.empty() ? "" : ", ") + std::string(rule.name);
    if (const MethodEntry* method = method_of_variant(rule_from(rule.name)))
      names += std::string(" (the official code of ") + method->name + ")";
  }
  return "Acceptance rule. Lossless: " + lossless + ". Lossy: " + lossy +
         ". For cspd: " + list_of(continuous_rules());
}

std::vector<std::string> all_rules() {
  std::vector<std::string> names = rule_names();
  for (const std::string& name : continuous_rules()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

// Chains of any length may be named.
std::vector<std::string> some_trees() {
  std::vector<std::string> names = tree_presets();
  for (int nodes = 1; nodes <= 8; ++nodes) names.push_back("chain-" + std::to_string(nodes));
  names.emplace_back(kDynamicTree);
  return names;
}

Value usual_rule(const Run& run) {
  return run.continuous ? "exact" : to_string(run.rule);
}

Narrow rules_of(const Run& run) {
  if (run.continuous) return {choices(continuous_rules(), for_method(run))};
  const MethodEntry* method = method_of_variant(run.rule);
  if (method != nullptr && method != &run.entry)
    refuse("rule " + to_string(run.rule) + " needs method " + method->name + ", but this run has " +
           run.options.method);
  return {};
}

Value usual_children(const Run& run) {
  return std::string(run.options.tree == kDynamicTree ? "top" : run.entry.children);
}

Narrow children_of(const Run& run) {
  Narrow all;
  if (!drafts_itself(run) && (!has_drafter(run) || run.entry.keeps_window()))
    all.push_back(choices({run.entry.children}, for_method(run)));
  if (run.options.tree == kDynamicTree)
    all.push_back(choices({"top"}, ": the tree dynamic expands the most probable ones"));
  if (verifies_paths(run)) all.push_back(choices({"sampled"}, for_rule(run)));
  const bool named = borrows(run) && !run.options.residual.empty();
  const Residual residual = named ? residual_from(run.options.residual) : Residual::paper;
  const bool top = residual == Residual::official_dynamic || residual == Residual::official_lumina_dynamic;
  if (is_official(residual))
    all.push_back(choices({top ? "top" : "sampled"}, " for residual " + run.options.residual));
  return all;
}

Value usual_neighbours(const Run& run) {
  const std::int64_t codes = run.manifest->tokens.codebook_size;
  const std::int64_t usual =
      traits_of(run.rule).many_neighbours() ? std::max<std::int64_t>(1, codes / 32) : 10;
  return std::min(usual, codes - 1);
}

Narrow neighbours_of(const Run& run) {
  const std::int64_t codes = run.manifest->tokens.codebook_size;
  return {whole(0, codes - 1, ": there are " + std::to_string(codes) + " codes")};
}

Narrow guidance_of(const Run& run) {
  return run.entry.needs_refiner() ? Narrow{choices({"combined"}, for_method(run))} : Narrow{};
}

Narrow lengths_of(const Run& run) {
  if (!run.entry.grows_trees()) return {choices({"full"}, for_method(run))};
  const std::string& tree = run.options.tree;
  if (!tree.empty() && (tree == kDynamicTree || load_tree(tree).max_children() > 1))
    return {choices({"full"}, ": the tree " + tree_name(tree) + " has siblings")};
  return {};
}

Value usual_layers(const Run& run) {
  return std::max<std::int64_t>(1, run.manifest->cache.layers / 2);
}

Narrow layers_of(const Run& run) {
  return {whole(1, run.manifest->cache.layers, ", the layers of the target")};
}

Narrow draft_windows_of(const Run& run) {
  if (beside_rows(*run.manifest) == "row_end")
    refuse("draft_window needs image rows of codes only, but in bundle " + run.manifest->name +
           " a token ends each row");
  return {};
}

// Every expanded node has as many children, of different codes.
Value usual_width(const Run& run) {
  return std::min<std::int64_t>(10, run.manifest->tokens.codebook_size);
}

Narrow widths_of(const Run& run) {
  const std::int64_t codes = run.manifest->tokens.codebook_size;
  return {whole(1, codes, ": there are " + std::to_string(codes) + " codes")};
}

Narrow depths_of(const Run& run) {
  const std::int64_t width = *run.options.dynamic_width;
  return {whole(1, kMaxTreeNodes / width, " with dynamic_width " + std::to_string(width))};
}

// All nodes of a dynamic tree below the root, of which the best stay.
std::int64_t pool_of(const MethodOptions& method) {
  const std::int64_t width = *method.dynamic_width;
  return width + *method.dynamic_depth * width * width;
}

Value usual_nodes(const Run& run) {
  return std::min<std::int64_t>(58, pool_of(run.options));
}

Narrow nodes_of(const Run& run) {
  return {whole(1, std::min(pool_of(run.options), kMaxTreeNodes - 1))};
}

std::vector<MethodOption> rows_before_numbers() {
  return {with_words(row("rule", "rule", "Rule", kMethod, "NAME", rule_help(), &M::rule, has_rule, {},
                         {"the method's", usual_rule}, rules_of),
                     all_rules()),
          common(with_words(
              row("tree", "tree", "Tree", kMethod, "NAME|FILE",
                  "Draft tree: chain-N, lantern-26, lantern-58, fan-K-S-N (windows), dynamic, or a file of "
                  "tune-tree",
                  &M::tree, verifies, {}, {"one that suits the method and the device", usual_tree}),
              some_trees())),
          row("children", "children", "Children", kMethod, "NAME",
              "How the drafter's tokens are chosen: sampled, or top (the most probable)", &M::children,
              verifies, choices({"sampled", "top"}), {"the method's", usual_children}, children_of),
          row("relax_k", "k", "Relax-k", kRelaxed, "K",
              "Neighbours that may stand for a token (lantern, lantern++)", &M::k, borrows, range(0),
              {"1/32 of the codes (lantern), 10 (lantern++)", usual_neighbours}, neighbours_of, "rule")};
}

std::vector<MethodOption> rows_of_drafting() {
  return {row("residual", "residual", "Residual", kRelaxed, "NAME",
              "Distribution after a rejection: " + list_of(residual_names()) + " (lantern, lantern++)",
              &M::residual, borrows, choices(residual_names()), fixed("paper"), {}, "rule"),
          row("drafter", "drafter", "Drafter", kMethod, "NAME", "Name of the drafter in the bundle",
              &M::drafter, has_drafter, {}, {"the first that suits the method", find_drafter}),
          row("draft_guidance", "draft-guidance", "Draft guidance", kMethod, "NAME",
              "Drafts with guidance (combined) or without (conditional)", &M::draft_guidance,
              verifies_drafter, choices({"combined", "conditional"}), fixed("combined"), guidance_of),
          row("draft_length", "length", "Draft length", kMethod, "NAME",
              "full, or auto: a chain ends where the drafter is unsure", &M::draft_length, verifies,
              choices({"full", "auto"}), unset("full"), lengths_of),
          row("draft_confidence", "confidence", "Draft confidence", kMethod, "X",
              "With --draft-length auto: a chain continues while the product of the drafter's largest "
              "probabilities is X or more",
              &M::draft_confidence, ends_early, range(0, 1), fixed(0.4F), {}, "draft_length"),
          row("draft_layers", "layers", "Draft layers", kMethod, "N",
              "Number of the target's first layers that draft (self)", &M::draft_layers, drafts_itself,
              range(1), {"half of its layers", usual_layers}, layers_of),
          row("draft_window", "window", "Draft window", kMethod, "N",
              "Newest tokens of the image that these layers attend to, beside the prompt (self)",
              &M::draft_window, drafts_itself, range(1), unset("all"), draft_windows_of)};
}

std::vector<MethodOption> rows_of_trees() {
  const double nodes = static_cast<double>(kMaxTreeNodes);
  return {
      row("neighbours", "neighbours", "Neighbours", kRelaxed, "FILE",
          "File with the table of neighbours (lantern, lantern++)", &M::neighbours, borrows, {},
          unset("the bundle's, or one computed from the codebook")),
      row("adapt", "adapt", "Adapt", kMethod, "NAME",
          "neighbours: at each position of the image the size of a dynamic tree or window follows what was "
          "accepted to the left and above; it is at most the size that the options give",
          &M::adapt, adapts, choices({"none", "neighbours"}), unset("none")),
      row("dynamic_depth", "depth", "Dynamic depth", kDynamic, "N",
          "Tree dynamic: expansions after the first", &M::dynamic_depth, has_dynamic_tree, range(1, nodes),
          fixed(std::int64_t{4}), depths_of, "tree"),
      row("dynamic_width", "width", "Dynamic width", kDynamic, "N", "Tree dynamic: nodes expanded per level",
          &M::dynamic_width, has_dynamic_tree, range(1, nodes), {"10, or all codes", usual_width}, widths_of,
          "tree"),
      row("dynamic_nodes", "nodes", "Dynamic nodes", kDynamic, "N", "Tree dynamic: nodes that are verified",
          &M::dynamic_nodes, has_dynamic_tree, range(1, nodes - 1), {"58", usual_nodes}, nodes_of, "tree")};
}

}  // namespace

const std::vector<MethodOption>& method_options() {
  static const std::vector<MethodOption> options = [] {
    std::vector<MethodOption> all = rows_before_numbers();
    for (const auto& rows :
         {rule_number_options(), rows_of_drafting(), window_options(), rows_of_trees(), continuous_options()})
      all.insert(all.end(), rows.begin(), rows.end());
    return all;
  }();
  return options;
}

}  // namespace lamplighter
