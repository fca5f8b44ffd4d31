#pragma once

#include <string>
#include <vector>

#include "acceptance/rules.h"
#include "lamplighter/bundle.h"

namespace lamplighter {

// The tree of a run that names none: static ones are read before the run, dynamic ones grow cycle by cycle.
enum class TreeKind { none, fixed, dynamic };

// eagle: one layer over the features of the target and the embeddings of the tokens that follow them.
enum class DrafterKind { none, eagle };

// A decoding method: what it means, and what it takes unless the options say otherwise.
struct MethodEntry {
  const char* name;
  const char* meaning;  // one line
  TreeKind tree;
  DrafterKind drafter;
  Rule rule = Rule::exact;
  const char* children = "";  // sampled or top

  bool drafts() const { return tree != TreeKind::none; }
  bool needs_drafter() const { return drafter != DrafterKind::none; }
};

// What the others are measured against.
constexpr const char* kBaseline = "ar";

// All methods, the baseline first. A new one is a row of the table in registry.cpp.
const std::vector<MethodEntry>& methods();

// Throws Error(usage) listing the methods there are.
const MethodEntry& find_method(const std::string& name);

// "ar, eagle, ..."; `drafting`: without those that draft nothing.
std::string method_names(bool drafting = false);

// The manifest entries that a bundle lacks for pictures drawn with a method; empty when it can be used.
// Tables of neighbours are no part of this: one that is absent is computed.
std::vector<std::string> missing_for(const MethodEntry& method, const Manifest& manifest);

}  // namespace lamplighter
