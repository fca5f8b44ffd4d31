#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "bench/report/json.h"
#include "bundle/modules/draft_model.h"
#include "bundle/modules/target.h"
#include "decode/prompts.h"
#include "decode/recorder.h"
#include "draft/method.h"
#include "draft/registry.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"
#include "measure/tune.h"
#include "pipeline/resolved_request.h"
#include "tools/bench_report.h"
#include "tools/commands/tune_tree.h"
#include "tools/signals.h"

namespace lamplighter::cli {
namespace {

constexpr int kMaxDepth = 8;  // default of --max-depth

// Measurements, and the tree that follows from them.
struct Tuning {
  std::int64_t deepest = kMaxTreeNodes - 1;  // greatest depth that the method can draft
  Tree survey;
  SiblingAcceptance acceptance;
  TreeCosts costs;
  TunedTree best;
  std::vector<Statistics> images;
  std::size_t cycles = 0;
  std::string device, dtype;

  Interval tokens() const { return scale(1); }  // per cycle
  // Over a pass of the last token alone.
  Interval speedup() const { return scale(costs.target_pass.front() / best.time); }

 private:
  // Expected tokens per cycle; the interval covers the variation between images.
  Interval scale(double factor) const {
    const Interval spread = tokens_by_image(best.tree, survey, images);
    factor *= best.tokens / spread.mean;
    return {spread.mean * factor, spread.low * factor, spread.high * factor, spread.count};
  }
};

DecodeRequest decode_request(const ResolvedRequest& request) {
  return {request.sampling, request.seed};
}

// The models of a run, and the prompts and methods for them.
struct Bench {
  Manifest manifest;
  Placement placement;
  Target target;
  std::optional<DraftModel> drafter;  // none where the target drafts itself
  PromptTokenizer tokenizer;
  PromptEncoder prompts;
  MethodOptions method;  // resolved; its tree is replaced

  Bench(const Manifest& bundle, const Placement& where, const MethodOptions& options)
      : manifest(bundle),
        placement(where),
        target(bundle, where),
        tokenizer(bundle),
        prompts(bundle, where),
        method(options) {
    if (!options.drafter.empty()) drafter.emplace(bundle, options.drafter, where);
  }

  Models models() const { return {&target, drafter ? &*drafter : nullptr}; }
  // The greatest depth of a tree of the method: heads draft one token each.
  std::int64_t deepest() const {
    return find_method(method.method).needs_heads() ? drafter->entry().heads : kMaxTreeNodes - 1;
  }
  std::vector<ResolvedRequest> resolve(const std::vector<Request>& requests) const {
    return resolve_requests(manifest, requests, [&](const Request& request, const Grid& grid) {
      return tokenizer.encode(request, grid);
    });
  }
  Prompts embed(const ResolvedRequest& request) const {
    return embed_prompts(models(), {prompts.encode(*request.prompt)}, is_guided({decode_request(request)}),
                         drafter && drafter->entry().padding);
  }
  Method with_tree(Tree tree, bool greedy) const {
    Method made = make_method(method, manifest, placement.device, greedy);
    if (tree.drafted() == 0) made.draft_method = &make_none;  // heads always draft
    made.tree = std::move(tree);
    return made;
  }
};

// Generates all images with the survey tree.
void measure_acceptance(const Bench& bench, const std::vector<ResolvedRequest>& requests, Terminal& terminal,
                        Tuning& tuning) {
  std::vector<Statistics>& images = tuning.images;
  for (const ResolvedRequest& request : requests) {
    const Method method = bench.with_tree(tuning.survey, request.is_greedy());
    const Prompts prompts = bench.embed(request);
    const std::int64_t each = request.grid->tokens(), done = each * static_cast<std::int64_t>(images.size());
    Recorder recorder(method);
    decode(bench.models(), method, prompts, {decode_request(request)}, *request.grid,
           [&](const Report& report) {
             recorder.add(report);
             terminal.progress(done + recorder.of(0).statistics.tokens,
                               each * static_cast<std::int64_t>(requests.size()));
             return stop_signal() == 0;
           });
    images.push_back(recorder.of(0).statistics);
    tuning.cycles += images.back().cycles.size();
  }
  tuning.acceptance = measured_acceptance(tuning.survey, images);
  if (tuning.acceptance.empty()) {
    throw Error(ExitCode::usage,
                "got " + counted(tuning.cycles, "cycle") + ", expected at least 50: give more prompts");
  }
}

// Times cycles with trees of 0 .. max_nodes drafted tokens, in the middle of an image of the first prompt.
// Every cycle accepts as many tokens as the largest tree expects, because they set the size of the next draft
// pass.
void measure_costs(const Bench& bench, const ResolvedRequest& request, const TuneFlags& flags,
                   Tuning& tuning) {
  std::vector<Method> methods;
  for (Tree& tree : cost_trees(flags.max_nodes, tuning.deepest))
    methods.push_back(bench.with_tree(std::move(tree), request.is_greedy()));
  const Prompts prompts = bench.embed(request);
  CycleOptions options;
  options.rounds = flags.rounds.value_or(options.rounds);
  options.block = 20;  // consecutive cycles, as in an image, so that the processor's caches are as warm
  options.accepted = accepted_around(expected_tokens(*methods.back().tree, tuning.acceptance) - 1);
  options.clock = clock_from(flags.clock);
  tuning.costs = measured_costs(measure_cycles(bench.models(), methods, prompts, {decode_request(request)},
                                               *request.grid, options, [](int) { return stop_signal() == 0; })
                                    .rounds,
                                tuning.deepest);
}

// Finds the best tree with at least one drafted node, even if ar is faster.
TunedTree best_drafting_tree(const Tuning& tuning, std::int64_t max_depth) {
  TreeCosts costs = tuning.costs;
  costs.target_pass.front() = 1e9;  // rules out the tree without drafts
  return best_tree(tuning.acceptance, costs, max_depth);
}

Json about(const Tuning& tuning, const TuneFlags& flags, const Manifest& manifest) {
  return {{"made_by", std::string("lamplighter ") + kVersion + " tune-tree"},
          {"model", manifest.name},
          {"device", tuning.device},
          {"dtype", tuning.dtype},
          {"threads", flags.model.runtime.threads},
          {"clock", flags.clock},
          {"method", flags.method},
          {"images", tuning.images.size()},
          {"cycles", tuning.cycles},
          {"acceptance_by_depth_and_rank", tuning.acceptance},
          {"target_pass_ms_by_rows", tuning.costs.target_pass},
          {"draft_level_ms", tuning.costs.draft_level},
          {"draft_rest_ms", tuning.costs.cycle},
          {"acceptance_length", to_json(tuning.tokens())},
          {"cycle_ms", tuning.best.time},
          {"speedup", to_json(tuning.speedup())}};
}

}  // namespace

Tuned tune_static_tree(const TuneFlags& flags, const Manifest& manifest, const Placement& placement,
                       const MethodOptions& method, const std::vector<Request>& requests,
                       Terminal& terminal) {
  verify_files(manifest, flags.model.options().verify_checksums);
  const Bench bench(manifest, placement, method);
  const std::vector<ResolvedRequest> resolved = bench.resolve(requests);
  Tuning tuning;
  tuning.deepest = bench.deepest();
  tuning.survey = survey_tree(tuning.deepest);
  tuning.device = placement.device.str();
  tuning.dtype = dtype_name(placement);
  const OrderlyStop orderly;
  measure_acceptance(bench, resolved, terminal, tuning);
  measure_costs(bench, resolved.front(), flags, tuning);
  tuning.best = best_drafting_tree(
      tuning, std::min(static_cast<std::int64_t>(flags.max_depth.value_or(kMaxDepth)), tuning.deepest));
  const Tree& tree = tuning.best.tree;
  return {tree,
          about(tuning, flags, manifest),
          tuning.speedup(),
          {},
          "tree of " + counted(tree.drafted(), "drafted node") + ", depth " +
              std::to_string(tree.max_depth()) + ": " + with_interval(tuning.tokens()) +
              " tokens a cycle expected, " + times_as_fast_as_ar(tuning.speedup()) + ", from " +
              counted(tuning.cycles, "cycle")};
}

}  // namespace lamplighter::cli
