#include "propose/registry.h"

#include <algorithm>

#include "base/message.h"
#include "lamplighter/error.h"
#include "propose/drafters/flash.h"
#include "propose/drafters/medusa.h"
#include "propose/drafters/mlp.h"
#include "propose/drafters/self.h"
#include "propose/lookup/lookahead.h"
#include "propose/lookup/ngram.h"
#include "propose/proposer.h"
#include "propose/windows/jacobi.h"
#include "propose/windows/open_windows.h"
#include "propose/windows/refine.h"
#include "propose/windows/zipar.h"

namespace lamplighter {

const std::vector<MethodEntry>& methods() {
  static const std::vector<MethodEntry> rows{
      {kBaseline, "one token a pass", TreeKind::none, "", &make_none},
      {"eagle", "a static tree of drawn tokens, the law of ar", TreeKind::fixed, "eagle", &make_eagle,
       Rule::exact, "sampled"},
      {"eagle-2", "a tree of the drafter's most probable tokens, the law of ar", TreeKind::dynamic, "eagle",
       &make_eagle, Rule::exact, "top"},
      {"eagle-3", "as eagle, with a drafter that reads inner layers of the target; the law of ar",
       TreeKind::fixed, "eagle-3", &make_eagle, Rule::exact, "sampled", kForwardFeatures},
      {"lantern", "as eagle; tokens borrow the probability of their neighbours, delta at most",
       TreeKind::fixed, "eagle", &make_eagle, Rule::lantern, "sampled"},
      {"lantern++", "as lantern, up to lambda times their own probability", TreeKind::fixed, "eagle",
       &make_eagle, Rule::lantern_plus, "sampled"},
      {"draft-model", "a chain or tree that a smaller target draws, the law of ar", TreeKind::fixed, "model",
       &make_eagle, Rule::exact, "sampled"},
      {"medusa", "a chain or tree of what heads on the target's hidden states guess; the law of ar",
       TreeKind::fixed, "medusa", &make_medusa, Rule::exact, "sampled"},
      {"mlp",
       "a chain or tree that a network without attention draws from the target's hidden state; the law of ar",
       TreeKind::fixed, "mlp", &make_mlp, Rule::exact, "sampled"},
      {"flash", "a chain or tree of what one pass of the drafter says of several tokens; the law of ar",
       TreeKind::fixed, "flash", &make_flash, Rule::exact, "sampled"},
      {"self", "a chain or tree that the first layers of the target draw, no drafter; the law of ar",
       TreeKind::fixed, "", &make_self, Rule::exact, "sampled", kForwardLayers},
      {"ngram", "a chain of what followed the last tokens before, or stands one row up; the law of ar",
       TreeKind::chain, "", &make_ngram, Rule::exact, "top"},
      {"lookahead", "runs of tokens that a window of Jacobi iteration and the picture gave; the law of ar",
       TreeKind::chain, "", &make_lookahead, Rule::exact, "top"},
      {"sjd", "a window of drafts that the target itself renews in every pass, no drafter; the law of ar",
       TreeKind::window, "", &make_jacobi, Rule::exact, "sampled"},
      {"scd", "sjd; all drafts stay where they may", TreeKind::window, "", &make_jacobi, Rule::exact,
       "sampled"},
      {"sjd-pac", "sjd with several candidates for the first places of the window; the law of ar",
       TreeKind::fan, "", &make_jacobi, Rule::exact, "sampled"},
      {"eagle+sjd", "sjd whose first places the drafter fills; the law of ar", TreeKind::fan, "eagle",
       &make_jacobi, Rule::exact, "sampled"},
      {"flash+sjd", "the same with a drafter of the kind flash", TreeKind::fan, "flash", &make_jacobi,
       Rule::exact, "sampled"},
      {"refine", "sjd whose drafts a small network draws anew from the target's stale rows; the law of ar",
       TreeKind::chain, "refine", &make_refine, Rule::exact, "sampled"},
      {"gsd", "sjd; a draft is judged by the mass of its group of tokens that are alike", TreeKind::window,
       "", &make_jacobi, Rule::grouped, "sampled"},
      {"zipar", "rows of the picture side by side, a token of each a pass; relaxed, no drafter",
       TreeKind::rows, "", &make_zipar},
      {"zipar+sjd", "zipar with a window of drafts in every row, as sjd has one; relaxed, no drafter",
       TreeKind::windows, "", &make_zipar_windows, Rule::exact, "sampled"},
      {"pjd", "zipar+sjd whose drafts see those of the rows above; relaxed, no drafter", TreeKind::windows,
       "", &make_row_parallel, Rule::exact, "sampled"},
      {"cspd", "continuous tokens: a smaller network drafts, the law of the target", TreeKind::continuous,
       "continuous", nullptr}};
  return rows;
}

const MethodEntry& find_method(const std::string& name) {
  for (const MethodEntry& method : methods()) {
    if (name == method.name) return method;
  }
  throw Error(ExitCode::usage, "method: got " + quote(name) + ", expected " + method_names());
}

std::string method_names(bool drafting) {
  std::string names;
  for (const MethodEntry& method : methods()) {
    if (!drafting || method.drafts()) names += (names.empty() ? "" : ", ") + std::string(method.name);
  }
  return names;
}

bool has_calls(const MethodEntry& method, const Manifest& manifest) {
  const auto target = manifest.modules.find("target");
  if (*method.calls == '\0' || target == manifest.modules.end()) return true;
  const std::vector<std::string>& known = target->second.methods;
  return std::find(known.begin(), known.end(), method.calls) != known.end();
}

bool rows_end(const Manifest& manifest) {
  return !manifest.grids.empty() && !manifest.grids.front().row_end.empty();
}

std::vector<std::string> missing_for(const MethodEntry& method, const Manifest& manifest) {
  std::vector<std::string> missing = missing_for_generation(manifest);
  if (method.drafts() && method.is_continuous() != manifest.is_continuous()) {
    missing.emplace_back(method.is_continuous() ? "tokens.kind: continuous" : "tokens.kind: codes");
    return missing;
  }
  const auto suits = [&](const auto& drafter) { return drafter.second.kind == method.drafter; };
  if (method.needs_drafter() && std::none_of(manifest.drafters.begin(), manifest.drafters.end(), suits))
    missing.emplace_back("drafters");
  if (!has_calls(method, manifest))
    missing.emplace_back(std::string("modules.target.methods: ") + method.calls);
  if (method.opens_rows() && rows_end(manifest)) missing.emplace_back("grids without row_end");
  return missing;
}

std::int64_t cache_numbers(const DrafterEntry& drafter) {
  return 2 * drafter.layers * drafter.kv_heads * drafter.head_dim;  // keys and values
}

std::int64_t cache_numbers(const MethodOptions& resolved, const Manifest& manifest) {
  return resolved.drafter.empty() ? 0 : cache_numbers(manifest.drafters.at(resolved.drafter));
}

}  // namespace lamplighter
