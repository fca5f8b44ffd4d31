#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "acceptance/rules.h"
#include "lamplighter/bundle.h"

namespace lamplighter {

// The trees of a method: fixed ones are read before the run, of which some methods take chains alone, also as
// windows of drafts that outlive a cycle, or such windows with several candidates for a place (fan); dynamic
// ones grow cycle by cycle, where the options name none. Rows of a picture that are drawn side by side are no
// tree and are not judged; or each of them has a window (windows). Continuous tokens are vectors and have a
// loop of their own (src/continuous).
enum class TreeKind { none, chain, window, fan, fixed, dynamic, rows, windows, continuous };

struct Method;
struct Models;
class Proposer;

// A decoding method: what it means, and what it takes unless the options say otherwise.
struct MethodEntry {
  const char* name;
  const char* meaning;  // one line
  TreeKind tree;
  const char* drafter;  // kind that it needs, as manifests name it; "": none
  std::unique_ptr<Proposer> (*proposer)(const Method& method, const Models& models);  // null: continuous
  Rule rule = Rule::exact;
  const char* children = "";  // sampled or top
  const char* calls = "";     // optional method of the target's archive that it needs; "": none

  bool drafts() const { return tree != TreeKind::none; }
  bool judges() const { return drafts() && tree != TreeKind::rows && !is_continuous(); }
  bool is_continuous() const { return tree == TreeKind::continuous; }
  bool opens_rows() const { return tree == TreeKind::rows || tree == TreeKind::windows; }
  bool drafts_chains() const { return tree == TreeKind::chain || (keeps_window() && tree != TreeKind::fan); }
  bool keeps_window() const {
    return tree == TreeKind::window || tree == TreeKind::fan || tree == TreeKind::windows;
  }
  bool needs_drafter() const { return *drafter != '\0'; }
  bool drafts_itself() const { return *calls != '\0' && !needs_drafter(); }  // with a part of the target
  bool needs_layer() const { return drafter == std::string("eagle") || drafter == std::string("eagle-3"); }
  // Which guess a number of tokens at most.
  bool needs_heads() const { return shares_candidates() || drafter == std::string("mlp"); }
  // The candidates of a depth are the same under every node.
  bool shares_candidates() const {
    return tree == TreeKind::fixed && (drafter == std::string("medusa") || drafter == std::string("flash"));
  }
  bool needs_refiner() const { return drafter == std::string("refine"); }
  bool renews_drafts() const { return keeps_window() || needs_refiner(); }  // those of the cycle before
};

// What the others are measured against.
constexpr const char* kBaseline = "ar";

// All methods, the baseline first. A new one is a row of the table in registry.cpp.
const std::vector<MethodEntry>& methods();

// Throws Error(usage) listing the methods there are.
const MethodEntry& find_method(const std::string& name);

// "ar, eagle, ..."; `drafting`: without those that draft nothing.
std::string method_names(bool drafting = false);

// Whether the archive of the bundle's target has what the method calls.
bool has_calls(const MethodEntry& method, const Manifest& manifest);

// Whether rows of the bundle's pictures end with a token, so that they are not drawn side by side.
bool rows_end(const Manifest& manifest);

// The manifest entries that a bundle lacks for pictures drawn with a method; empty when it can be used.
// Tables of neighbours are no part of this: one that is absent is computed.
std::vector<std::string> missing_for(const MethodEntry& method, const Manifest& manifest);

// How many numbers methods keep for every row of a sequence besides the target's cache: of one that drafts
// with this drafter, and of any.
std::int64_t cache_numbers(const DrafterEntry& drafter);
std::int64_t cache_numbers(const MethodOptions& resolved, const Manifest& manifest);

}  // namespace lamplighter
