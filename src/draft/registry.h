#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acceptance/rules.h"
#include "bundle/draft_kinds.h"
#include "draft/draft_method.h"
#include "lamplighter/bundle.h"

namespace lamplighter {

// What a method drafts for an image in a cycle.
enum class TreeKind {
  none,
  chain,
  runs,              // several runs of tokens, each as long as the chain
  refined,           // a chain that a network renews from the target's logits of the cycle before
  window,            // a chain whose drafts outlive the cycle
  multi_candidate,   // the same with several candidates at the first positions
  fixed,             // any static tree
  dynamic,           // a tree that grows cycle by cycle
  parallel_rows,     // no tree: row-parallel decoding without verification
  parallel_windows,  // a window in each of several parallel rows
  continuous,        // continuous tokens, which have a loop of their own (src/continuous)
};

// The tree unless the options name one. Null: the bundle's tuned tree, else default_tree.
struct DefaultTrees {
  const char *cpu = nullptr, *cuda = nullptr;
};

// What the official code of a method does, where that differs from the method. A rule of its own selects it.
struct OfficialVariant {
  Rule rule;
  MakeDraftMethod draft_method;
  const char *init, *tail;  // the only values of these options
};

// A decoding method with its defaults.
struct MethodEntry {
  const char* name;
  const char* meaning;  // one line
  TreeKind tree;
  std::optional<DraftKind> drafter;  // kind of the network that it calls
  MakeDraftMethod draft_method;      // null: continuous
  DefaultTrees trees = {};
  const char* children = "";  // sampled or top
  Rule rule = Rule::exact;
  const char* calls = "";               // optional method of the target's archive that it needs; "": none
  MakeTreeDraftMethod front = nullptr;  // fills the first positions of a window; null: nothing does
  bool shares_candidates = false;       // all nodes of a depth have the same candidates
  std::int64_t longest = 0;             // longest chain; 0: any that a tree can hold
  std::optional<OfficialVariant> official = {};
  const char* only_tail = "";  // the only value of the option tail; "": both

  bool drafts() const { return tree != TreeKind::none; }
  bool verifies() const { return drafts() && tree != TreeKind::parallel_rows && !is_continuous(); }
  bool is_continuous() const { return tree == TreeKind::continuous; }
  bool is_row_parallel() const {
    return tree == TreeKind::parallel_rows || tree == TreeKind::parallel_windows;
  }
  bool drafts_chains() const {
    return tree == TreeKind::chain || tree == TreeKind::runs || needs_refiner() ||
           (keeps_window() && tree != TreeKind::multi_candidate);
  }
  bool keeps_window() const {
    return tree == TreeKind::window || tree == TreeKind::multi_candidate ||
           tree == TreeKind::parallel_windows;
  }
  bool needs_drafter() const { return drafter.has_value(); }
  // The target drafts with a part of itself.
  bool drafts_itself() const { return *calls != '\0' && !needs_drafter(); }
  // The network is a layer over the target's features, which can draft any tree.
  bool needs_layer() const {
    return needs_drafter() && draft_kind(*drafter).reads == DraftInput::features && !has_heads();
  }
  // The network has heads for a number of tokens, which bound the depth of the tree.
  bool needs_heads() const { return tree == TreeKind::fixed && has_heads(); }
  bool needs_refiner() const { return tree == TreeKind::refined; }
  // Drafts of the cycle before are renewed.
  bool renews_drafts() const { return keeps_window() || needs_refiner(); }
  // The network drafts token by token with a cache of its own: dynamic trees, and chains that end early.
  bool grows_trees() const {
    return needs_drafter() && !renews_drafts() && draft_kind(*drafter).has(kDraftCache) && !has_heads();
  }
  bool has_heads() const { return needs_drafter() && draft_kind(*drafter).has(kDraftHeads); }
  // The official variant if `selected` selects it, else null.
  const OfficialVariant* variant(Rule selected) const {
    return official && official->rule == selected ? &*official : nullptr;
  }
};

// The method that the others are compared with.
constexpr const char* kBaseline = "ar";

// All methods, the baseline first.
const std::vector<MethodEntry>& methods();

// Throws Error(usage), which lists the methods.
const MethodEntry& find_method(const std::string& name);

// The method whose official variant `rule` selects; null: none.
const MethodEntry* method_of_variant(Rule rule);

// Of all methods, or of those that draft.
std::vector<std::string> method_names(bool drafting = false);

// Whether the target's archive has the optional method that `method` calls.
bool has_calls(const MethodEntry& method, const Manifest& manifest);

// The entry of grids by which an image has tokens beside the codes of its rows: row_end or preview; empty
// without one. It rules out row-parallel decoding.
std::string beside_rows(const Manifest& manifest);

// The manifest entries that a bundle lacks for a method. A table of neighbours is never among them: it can be
// computed.
std::vector<std::string> missing_for(const MethodEntry& method, const Manifest& manifest);

// Numbers that a drafter's cache has for each position of a sequence; 0 for methods without a drafter.
std::int64_t cache_numbers(const DraftModelEntry& drafter);
std::int64_t cache_numbers(const MethodOptions& resolved, const Manifest& manifest);

}  // namespace lamplighter
