#include "draft/options/resolve.h"

#include <algorithm>
#include <vector>

#include "base/files.h"
#include "base/message.h"
#include "base/suggestion.h"
#include "bundle/draft_kinds.h"
#include "draft/options/option_values.h"
#include "draft/options/options.h"
#include "draft/options/resolve_parts.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "tree/tree.h"

namespace lamplighter {
namespace {

// Throws Error (usage, bundle) where the bundle has other tokens than the method or lacks what it calls.
void check_bundle(const MethodEntry& entry, const Manifest& manifest) {
  const std::string method = std::string("method ") + entry.name;
  if (entry.drafts() && entry.is_continuous() != manifest.is_continuous())
    refuse(manifest.is_continuous() ? method + " generates codes, but the tokens of bundle " + manifest.name +
                                          " are continuous; use ar or cspd"
                                    : method + " generates continuous tokens, but the tokens of bundle " +
                                          manifest.name + " are codes");
  const std::string beside = beside_rows(manifest);
  if (entry.is_row_parallel() && !beside.empty())
    refuse(method + " needs image rows of codes only, but in bundle " + manifest.name +
           (beside == "preview" ? " a preview stands in front of them" : " a token ends each row") +
           "; sjd runs with any bundle");
  if (!has_calls(entry, manifest))
    throw Error(ExitCode::bundle, method + ": the target of bundle " + manifest.name + " has no " +
                                      entry.calls +
                                      ", which older exporters did not write; export the bundle again");
}

// Throws Error(usage) for a value out of the limits of this run; `choices`: of texts alone, which need no
// bundle.
void check_limits(const MethodContext& run, bool choices) {
  for (const MethodOption& option : method_options()) {
    const bool skipped = choices && option.limits.choices.empty();
    if (skipped || !option.narrow || !is_set(run.options, option) || !option.reads(run)) continue;
    for (const Limits& limits : option.narrow(run)) check_value(run.options, option, limits);
  }
}

// The tree of a file that is not the bundle's becomes part of the options: the file is read once, and images
// carry the tree.
void embed_file(MethodOptions& method, const Manifest& manifest) {
  const bool own = std::any_of(manifest.trees.begin(), manifest.trees.end(), [&](const auto& tuned) {
    return method.tree == join_path(manifest.directory, tuned.second);
  });
  if (!own && !method.tree.empty() && method.tree != kDynamicTree && is_tree_file(method.tree))
    method.tree = embed_tree(load_tree(method.tree), method.tree);
}

}  // namespace

std::string find_drafter(const MethodContext& run) {
  const MethodOptions& method = run.options;
  const Manifest& manifest = *run.manifest;
  const DraftKindEntry& kind = draft_kind(*run.entry.drafter);
  std::vector<std::string> known;
  for (const auto& [name, entry] : manifest.drafters) {
    if (draft_kind(entry).kind == kind.kind) known.push_back(name);
  }
  if (known.empty())
    throw Error(ExitCode::bundle, "method " + method.method + ": bundle " + manifest.name +
                                      " has no drafter of kind " + kind.name +
                                      "; add one with lamplighter-export " + kind.exporter +
                                      (run.continuous ? "" : ", or use method sjd, which needs none"));
  const auto has = [&](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  if (method.drafter.empty()) return has(manifest.first_drafter) ? manifest.first_drafter : known.front();
  if (!has(method.drafter))
    refuse("drafter: got " + quote(method.drafter) + ", this bundle has " + list_of(known) +
           did_you_mean(method.drafter, known));
  return method.drafter;
}

MethodOptions resolve_method(const MethodOptions& options, const Manifest& manifest,
                             const std::string& device, int batch) {
  MethodOptions method = options;
  const MethodEntry& entry = find_method(method.method);
  check_bundle(entry, manifest);
  check_options(options);
  const bool codes = !manifest.is_continuous();
  const MethodContext run{method, entry, codes ? rule_of(options) : Rule::exact, !codes, &manifest,
                          device, batch};
  check_limits(run, true);  // a wrong word is reported before what the bundle lacks
  if (entry.needs_drafter()) find_drafter(run);
  embed_file(method, manifest);
  for (const MethodOption& option : method_options()) {
    if (!is_set(method, option) && option.usual.value && option.reads(run))
      set_value(method, option, option.usual.value(run));
  }
  for (const MethodOption& option : method_options()) {
    if (is_set(options, option) && !option.reads(run)) refuse_unread(run, option);
  }
  if (!method.tree.empty()) check_tree(run);
  check_limits(run, false);
  return method;
}

}  // namespace lamplighter
