#include "propose/options/resolve.h"

#include <algorithm>

#include "base/message.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "propose/options/options.h"
#include "propose/options/resolve_parts.h"

namespace lamplighter {
namespace {

// A method that drafts nothing has no use for options.
void check_plain(const MethodOptions& method) {
  for (const MethodOption& option : method_options()) {
    if (!is_set(method, option)) continue;
    refuse("method " + method.method + " drafts nothing: trees, rules and their options need one of " +
           method_names(true));
  }
}

void check_calls(const MethodEntry& entry, const Manifest& manifest) {
  if (has_calls(entry, manifest)) return;
  throw Error(ExitCode::bundle, std::string("method ") + entry.name + ": the target of bundle " +
                                    manifest.name + " has no " + entry.calls +
                                    ", it was exported before there was one; export the bundle again");
}

// Which part of the target drafts.
void resolve_self(MethodOptions& method, const MethodEntry& entry, const Manifest& manifest) {
  if (!entry.drafts_itself()) return refuse_options(method, "self", "the method self");
  const std::int64_t layers = manifest.cache.layers;
  if (!method.draft_layers) method.draft_layers = std::max<std::int64_t>(1, layers / 2);
  if (*method.draft_layers > layers)
    refuse("draft_layers: got " + std::to_string(*method.draft_layers) + ", expected 1 to " +
           std::to_string(layers) + ", the layers of the target");
  if (rows_end(manifest) && method.draft_window)
    refuse("draft_window needs rows of codes alone, those of bundle " + manifest.name + " end with a token");
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

void refuse(const std::string& message) {
  throw Error(ExitCode::usage, message);
}

void refuse_options(const MethodOptions& method, const std::string& need, const std::string& of) {
  for (const MethodOption& option : method_options()) {
    if (option.needs == need && is_set(method, option))
      refuse(std::string(option.key) + " needs " + of + ", this run has " + method.method);
  }
}

void resolve_drafter(MethodOptions& method, const std::string& kind, const Manifest& manifest) {
  std::string known, first;
  for (const auto& [name, entry] : manifest.drafters) {
    if (entry.kind != kind) continue;
    known += (known.empty() ? "" : ", ") + name;
    if (first.empty() || name == manifest.first_drafter) first = name;
  }
  if (known.empty()) {
    throw Error(ExitCode::bundle, "method " + method.method + ": bundle " + manifest.name +
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
    refuse("drafter: got " + quote(method.drafter) + ", this bundle has " + known);
}

MethodOptions resolve_method(const MethodOptions& options, const Manifest& manifest,
                             const std::string& device, int batch) {
  if (manifest.is_continuous()) return resolve_continuous(options, manifest);
  MethodOptions method = options;
  const MethodEntry& entry = find_method(method.method);
  if (entry.is_continuous())
    refuse("method " + method.method + " draws continuous tokens, those of bundle " + manifest.name +
           " are codes");
  for (const char* need : {"steps", "passes", "continuous"})
    refuse_options(method, need, "a bundle of continuous tokens");
  if (!entry.drafts()) {
    check_plain(method);
    return method;
  }
  if (!entry.judges()) {
    resolve_rows(method, manifest);
    return method;
  }
  refuse_options(method, "rows", "the method zipar");
  if (!entry.opens_rows()) refuse_options(method, "ahead", "the method zipar, zipar+sjd or pjd");
  const Rule rule = rule_of(method);
  method.rule = to_string(rule);
  if (method.children.empty()) method.children = method.tree == kDynamicTree ? "top" : entry.children;
  if (entry.needs_drafter()) {
    if (method.draft_guidance.empty()) method.draft_guidance = "combined";
    if (entry.needs_refiner() && method.draft_guidance != "combined")
      refuse("draft_guidance: got " + method.draft_guidance + ", expected combined for method " +
             method.method);
  } else {
    const std::string none = ", method " + method.method + " has no drafter";
    if (!method.drafter.empty()) refuse("drafter: got " + method.drafter + none);
    if (!method.draft_guidance.empty()) refuse("draft_guidance: got " + method.draft_guidance + none);
  }
  check_options(method);
  check_length(method, entry);
  resolve_window(method, entry);
  if (entry.opens_rows()) check_rows(method, manifest);
  check_calls(entry, manifest);
  resolve_self(method, entry, manifest);
  if (entry.needs_drafter()) resolve_drafter(method, entry.drafter, manifest);
  resolve_rule(method, rule, manifest.tokens.codebook_size);
  if (method.residual.empty()) method.residual = to_string(Residual::paper);
  const Residual residual = residual_from(method.residual);
  resolve_tree(method, rule, entry, manifest, device, batch);
  check_children(method, entry, rule, residual);
  if (entry.needs_heads()) check_heads(method, rule, entry, manifest);
  resolve_length(method);
  return method;
}

}  // namespace lamplighter
