#include <algorithm>

#include "propose/options/options.h"
#include "propose/options/resolve_parts.h"

namespace lamplighter {
namespace {

constexpr std::int64_t kFront = 2;  // places that a drafter fills

// A short window that is drawn anew has as much accepted as one that stays, for less work.
void resolve_tail(MethodOptions& method, const MethodEntry& entry, Rule rule) {
  if (!entry.renews_drafts()) return refuse_options(method, "tail", "a method with a window of drafts");
  const bool paths = rule == Rule::block || rule == Rule::traversal;
  if (method.tail.empty()) method.tail = paths || entry.needs_refiner() ? "fresh" : "keep";
  if (method.tail == "fresh" && method.method == "scd")
    refuse("tail: got fresh, expected keep for method scd; sjd has both");
  // Drafts that stay depend on those before them, and whole paths are judged by the product of their laws.
  if (paths && method.tail != "fresh")
    refuse("tail: got " + method.tail + ", expected fresh: rule " + method.rule + " needs it");
  if (entry.needs_refiner() && method.children == "top" && method.tail != "fresh")
    refuse("tail: got " + method.tail + ", expected fresh: children top are not drawn");
}

}  // namespace

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
  } else {
    refuse_options(method, "window", "a method with a window of drafts");
  }
  resolve_tail(method, entry, rule);
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

void check_rows(const MethodOptions& method, const Manifest& manifest) {
  if (rows_end(manifest))
    refuse("method " + method.method + " needs rows of codes alone, those of bundle " + manifest.name +
           " end with a token; sjd is for any bundle");
}

void resolve_rows(MethodOptions& method, const Manifest& manifest) {
  for (const MethodOption& option : method_options()) {
    if (is_set(method, option) && !has_use(method, option))
      refuse(std::string(option.key) + " needs a method that drafts, this run has " + method.method);
  }
  check_options(method);
  check_rows(method, manifest);
  if (method.zipar.empty()) method.zipar = "clean";
}

}  // namespace lamplighter
