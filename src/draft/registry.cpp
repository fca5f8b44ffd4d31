#include "draft/registry.h"

#include <algorithm>

#include "base/message.h"
#include "base/suggestion.h"
#include "draft/drafters/eagle.h"
#include "draft/drafters/flash.h"
#include "draft/drafters/medusa.h"
#include "draft/drafters/mlp.h"
#include "draft/drafters/self.h"
#include "draft/lookup/lookahead.h"
#include "draft/lookup/ngram.h"
#include "draft/none.h"
#include "draft/options/resolve.h"
#include "draft/rows/row_parallel_jacobi.h"
#include "draft/rows/zipar.h"
#include "draft/windows/jacobi.h"
#include "draft/windows/refine.h"
#include "draft/windows/sjd_pac_official.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"

namespace lamplighter {
namespace {

constexpr DefaultTrees kTuned{}, kGrown{kDynamicTree, kDynamicTree}, kChain{"chain-4", "chain-4"};
// On a CPU: as many rows, two for each node with guidance, as a product takes at the cost of two.
constexpr DefaultTrees kWindow{"chain-5", "chain-31"}, kFrontWindow{"chain-5", "chain-5"};
constexpr DefaultTrees kRowWindow{"chain-3", "chain-15"};
constexpr DefaultTrees kRefined{"chain-5", "chain-7"};  // on CUDA sixteen rows of a product with guidance
// The paper has three candidates at two positions.
constexpr DefaultTrees kFan{"fan-2-1-5", "fan-3-2-31"};
constexpr std::nullopt_t kNoNetwork = std::nullopt;
constexpr std::optional<OfficialVariant> kSjdPacOfficial =
    OfficialVariant{Rule::official_pac, &make_sjd_pac_official, "uniform", "keep"};

template <class T>
MethodEntry with(MethodEntry entry, T MethodEntry::*field, T value) {
  entry.*field = value;
  return entry;
}

}  // namespace

const std::vector<MethodEntry>& methods() {
  static const std::vector<MethodEntry> rows{
      {kBaseline, "one token per target pass", TreeKind::none, kNoNetwork, &make_none},
      {"eagle", "EAGLE: a layer over the target's features drafts a static tree; lossless", TreeKind::fixed,
       DraftKind::eagle, &make_eagle, kTuned, "sampled"},
      {"eagle-2", "EAGLE-2: a dynamic tree of the drafter's most probable tokens; lossless",
       TreeKind::dynamic, DraftKind::eagle, &make_eagle, kGrown, "top"},
      with({"eagle-3", "EAGLE-3: as eagle with a drafter that reads inner layers of the target; lossless",
            TreeKind::fixed, DraftKind::eagle_3, &make_eagle, kTuned, "sampled"},
           &MethodEntry::calls, kForwardFeatures),
      {"lantern",
       "LANTERN: as eagle; a token borrows the probability of its neighbours, at most delta; lossy",
       TreeKind::fixed, DraftKind::eagle, &make_eagle, kTuned, "sampled", Rule::lantern},
      {"lantern++", "LANTERN++: as lantern, up to lambda times the token's own probability; lossy",
       TreeKind::fixed, DraftKind::eagle, &make_eagle, kTuned, "sampled", Rule::lantern_plus},
      {"draft-model", "speculative sampling: a smaller target drafts a chain or tree; lossless",
       TreeKind::fixed, DraftKind::model, &make_eagle, kChain, "sampled"},
      with({"medusa", "Medusa: heads on the target's hidden state draft a chain or tree; lossless",
            TreeKind::fixed, DraftKind::medusa, &make_medusa, kChain, "sampled"},
           &MethodEntry::shares_candidates, true),
      {"mlp", "MLP speculator: a recurrent network without attention drafts a chain or tree; lossless",
       TreeKind::fixed, DraftKind::mlp, &make_mlp, kChain, "sampled"},
      with({"flash", "FLASH: one pass of the drafter predicts several tokens, a chain or tree; lossless",
            TreeKind::fixed, DraftKind::flash, &make_flash, kChain, "sampled"},
           &MethodEntry::shares_candidates, true),
      with({"self", "the first layers of the target draft a chain or tree, no drafter; lossless",
            TreeKind::fixed, kNoNetwork, &make_self, kChain, "sampled"},
           &MethodEntry::calls, kForwardLayers),
      {"ngram",
       "a chain copied from an earlier place with the same tokens, or from one row up, no drafter; lossless",
       TreeKind::chain, kNoNetwork, &make_ngram, kChain, "top"},
      with({"lookahead",
            "lookahead decoding: n-grams of a window of Jacobi iteration and of the image, no drafter; "
            "lossless",
            TreeKind::runs, kNoNetwork, &make_lookahead, kChain, "top"},
           &MethodEntry::longest, longest_lookahead()),
      {"sjd",
       "speculative Jacobi decoding: every target pass renews a window of drafts, no drafter; lossless",
       TreeKind::window, kNoNetwork, &make_jacobi, kWindow, "sampled"},
      with({"scd", "sjd; every draft stays where its new distribution allows it (coupling); lossless",
            TreeKind::window, kNoNetwork, &make_jacobi, kWindow, "sampled"},
           &MethodEntry::only_tail, "keep"),
      with({"sjd-pac", "SJD-PAC: sjd with several candidates at the first positions of the window; lossless",
            TreeKind::multi_candidate, kNoNetwork, &make_jacobi, kFan, "sampled"},
           &MethodEntry::official, kSjdPacOfficial),
      with({"eagle+sjd", "sjd; EAGLE's drafter fills the first positions of the window; lossless",
            TreeKind::multi_candidate, DraftKind::eagle, &make_jacobi, kFrontWindow, "sampled"},
           &MethodEntry::front, &make_eagle_static),
      with({"flash+sjd", "sjd; FLASH's drafter fills the first positions of the window; lossless",
            TreeKind::multi_candidate, DraftKind::flash, &make_jacobi, kFrontWindow, "sampled"},
           &MethodEntry::front, &make_flash_tree),
      {"refine",
       "sjd; a small network corrects the target's stale logits, which give the next drafts; lossless",
       TreeKind::refined, DraftKind::refine, &make_refine, kRefined, "sampled"},
      {"gsd", "grouped SJD: a draft is verified by the probability of its group of similar tokens; lossy",
       TreeKind::window, kNoNetwork, &make_jacobi, kWindow, "sampled", Rule::grouped},
      {"zipar", "ZipAR: several image rows in parallel, one token of each per pass, no drafter; lossy",
       TreeKind::parallel_rows, kNoNetwork, &make_zipar},
      {"zipar+sjd", "zipar with a window of drafts, as in sjd, in every row, no drafter; lossy",
       TreeKind::parallel_windows, kNoNetwork, &make_zipar_sjd, kRowWindow, "sampled"},
      {"pjd",
       "row-parallel Jacobi decoding: zipar+sjd whose drafts attend to drafts of the rows above; lossy",
       TreeKind::parallel_windows, kNoNetwork, &make_pjd, kRowWindow, "sampled"},
      {"cspd", "continuous speculative decoding: a smaller network drafts continuous tokens; lossless",
       TreeKind::continuous, DraftKind::continuous, nullptr}};
  return rows;
}

const MethodEntry& find_method(const std::string& name) {
  for (const MethodEntry& method : methods()) {
    if (name == method.name) return method;
  }
  const std::vector<std::string> known = method_names();
  throw Error(ExitCode::usage,
              "method: got " + quote(name) + ", expected " + list_of(known) + did_you_mean(name, known));
}

const MethodEntry* method_of_variant(Rule rule) {
  for (const MethodEntry& method : methods()) {
    if (method.variant(rule) != nullptr) return &method;
  }
  return nullptr;
}

std::vector<std::pair<std::string, std::string>> method_meanings() {
  std::vector<std::pair<std::string, std::string>> meanings;
  for (const MethodEntry& method : methods()) meanings.emplace_back(method.name, method.meaning);
  return meanings;
}

std::vector<std::string> method_names(bool drafting) {
  std::vector<std::string> names;
  for (const MethodEntry& method : methods()) {
    if (!drafting || method.drafts()) names.emplace_back(method.name);
  }
  return names;
}

bool has_calls(const MethodEntry& method, const Manifest& manifest) {
  const auto target = manifest.modules.find("target");
  if (*method.calls == '\0' || target == manifest.modules.end()) return true;
  const std::vector<std::string>& known = target->second.methods;
  return std::find(known.begin(), known.end(), method.calls) != known.end();
}

std::string beside_rows(const Manifest& manifest) {
  if (manifest.grids.empty()) return "";
  const Grid& grid = manifest.grids.front();
  if (!grid.row_end.empty()) return "row_end";
  return grid.preview_tokens() > 0 ? "preview" : "";
}

std::vector<std::string> missing_for(const MethodEntry& method, const Manifest& manifest) {
  std::vector<std::string> missing = missing_for_tokens(manifest);
  if (method.drafts() && method.is_continuous() != manifest.is_continuous()) {
    missing.emplace_back(method.is_continuous() ? "tokens.kind: continuous" : "tokens.kind: codes");
    return missing;
  }
  const auto suits = [&](const auto& drafter) { return draft_kind(drafter.second).kind == method.drafter; };
  if (method.needs_drafter() && std::none_of(manifest.drafters.begin(), manifest.drafters.end(), suits))
    missing.emplace_back("drafters");
  if (!has_calls(method, manifest))
    missing.emplace_back(std::string("modules.target.methods: ") + method.calls);
  const std::string beside = beside_rows(manifest);
  if (method.is_row_parallel() && !beside.empty()) missing.emplace_back("grids without " + beside);
  // models/heads/train_refiner.py trains refiners for these targets alone.
  if (method.needs_refiner() && beside == "row_end") missing.emplace_back("grids without row_end");
  if (method.needs_refiner() && manifest.target.head_layers > 1)
    missing.emplace_back("target.head_layers: 1");
  return missing;
}

std::int64_t cache_numbers(const DraftModelEntry& drafter) {
  return 2 * drafter.layers * drafter.kv_heads * drafter.head_dim;  // keys and values
}

std::int64_t cache_numbers(const MethodOptions& resolved, const Manifest& manifest) {
  return resolved.drafter.empty() ? 0 : cache_numbers(manifest.drafters.at(resolved.drafter));
}

}  // namespace lamplighter
