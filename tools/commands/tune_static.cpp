#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/report/json.h"
#include "bench/tune.h"
#include "bundle/modules/drafter.h"
#include "bundle/modules/target.h"
#include "decode/prompts.h"
#include "decode/recorder.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"
#include "pipeline/requests/request.h"
#include "propose/method.h"
#include "propose/registry.h"
#include "tools/bench_report.h"
#include "tools/signals.h"
#include "tune_tree.h"

namespace lamplighter::cli {
namespace {

constexpr int kMaxDepth = 8;  // unless the flags say otherwise

// What is measured, and what follows from it.
struct Tuning {
  std::int64_t deepest = kMaxTreeNodes - 1;  // tree that the drafter can draw
  Tree survey;
  SiblingAcceptance acceptance;
  TreeCosts costs;
  TunedTree best;
  std::vector<Statistics> pictures;
  std::size_t cycles = 0;
  std::string device, dtype;

  Interval tokens() const { return scale(1); }  // per cycle
  // Against a pass over the root alone.
  Interval speedup() const { return scale(costs.target_pass.front() / best.time); }

 private:
  // The expected tokens per cycle; the ends tell what other pictures would change.
  Interval scale(double factor) const {
    const Interval spread = tokens_by_picture(best.tree, survey, pictures);
    factor *= best.tokens / spread.mean;
    return {spread.mean * factor, spread.low * factor, spread.high * factor, spread.count};
  }
};

DecodeRequest draw(const ResolvedRequest& request) {
  return {request.sampling, request.seed};
}

// The models of a run and what is drawn with them.
struct Bench {
  Manifest manifest;
  Placement placement;
  Target target;
  std::optional<Drafter> drafter;  // none where the target drafts itself
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
  // How deep the trees of the method can be: heads guess so many tokens at most.
  std::int64_t deepest() const {
    return find_method(method.method).needs_heads() ? drafter->entry().heads : kMaxTreeNodes - 1;
  }
  std::vector<ResolvedRequest> resolve(const std::vector<Request>& requests) const {
    return resolve_requests(manifest, requests, [&](const Request& request, const Grid& grid) {
      return tokenizer.encode(request, grid);
    });
  }
  Prompts embed(const ResolvedRequest& request) const {
    return embed_prompts(models(), {prompts.encode(*request.prompt)}, is_guided({draw(request)}),
                         drafter && drafter->entry().padding);
  }
  Method with_tree(Tree tree, bool greedy) const {
    Method made = make_method(method, manifest, placement.device, greedy);
    if (tree.drafted() == 0) made.proposer = &make_none;  // heads cannot draft nothing
    made.tree = std::move(tree);
    return made;
  }
};

// Draws all pictures with the survey tree.
void measure_acceptance(const Bench& bench, const std::vector<ResolvedRequest>& requests, Terminal& terminal,
                        Tuning& tuning) {
  std::vector<Statistics>& pictures = tuning.pictures;
  for (const ResolvedRequest& request : requests) {
    const Method method = bench.with_tree(tuning.survey, request.is_greedy());
    const Prompts rows = bench.embed(request);
    const std::int64_t each = request.grid->tokens(),
                       done = each * static_cast<std::int64_t>(pictures.size());
    Recorder recorder(method);
    decode(bench.models(), method, rows, {draw(request)}, *request.grid, [&](const Report& report) {
      recorder.add(report);
      terminal.progress(done + recorder.of(0).statistics.tokens,
                        each * static_cast<std::int64_t>(requests.size()));
      return stop_signal() == 0;
    });
    pictures.push_back(recorder.of(0).statistics);
    tuning.cycles += pictures.back().cycles.size();
  }
  tuning.acceptance = measured_acceptance(tuning.survey, pictures);
  if (tuning.acceptance.empty()) {
    throw Error(ExitCode::usage,
                "got " + std::to_string(tuning.cycles) + " cycles, expected at least 50: give more prompts");
  }
}

// Trees of 0 .. max_nodes drafted tokens, in the middle of a picture of the first prompt. As many tokens are
// accepted as the largest tree is to expect: the drafter's next pass is over so many rows.
void measure_costs(const Bench& bench, const ResolvedRequest& request, const TuneFlags& flags,
                   Tuning& tuning) {
  std::vector<Method> methods;
  for (Tree& tree : cost_trees(flags.max_nodes, tuning.deepest))
    methods.push_back(bench.with_tree(std::move(tree), request.is_greedy()));
  const Prompts prompts = bench.embed(request);
  CycleOptions options;
  options.rounds = flags.rounds.value_or(options.rounds);
  options.block = 20;  // in a row, as in a picture: the caches of the processor keep what they can
  options.accepted = accepted_around(expected_tokens(*methods.back().tree, tuning.acceptance) - 1);
  options.clock = clock_from(flags.clock);
  tuning.costs = measured_costs(measure_cycles(bench.models(), methods, prompts, {draw(request)},
                                               *request.grid, options, [](int) { return stop_signal() == 0; })
                                    .rounds,
                                tuning.deepest);
}

// The best tree that drafts at all, also where autoregression is quicker.
TunedTree best_drafting_tree(const Tuning& tuning, std::int64_t max_depth) {
  TreeCosts costs = tuning.costs;
  costs.target_pass.front() = 1e9;  // of the root alone
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
          {"pictures", tuning.pictures.size()},
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
  const std::vector<ResolvedRequest> wanted = bench.resolve(requests);
  Tuning tuning;
  tuning.deepest = bench.deepest();
  tuning.survey = survey_tree(tuning.deepest);
  tuning.device = placement.device.str();
  tuning.dtype = dtype_name(placement);
  const OrderlyStop orderly;
  measure_acceptance(bench, wanted, terminal, tuning);
  measure_costs(bench, wanted.front(), flags, tuning);
  tuning.best = best_drafting_tree(
      tuning, std::min(static_cast<std::int64_t>(flags.max_depth.value_or(kMaxDepth)), tuning.deepest));
  const Tree& tree = tuning.best.tree;
  return {tree,
          about(tuning, flags, manifest),
          tuning.speedup(),
          {},
          "tree of " + std::to_string(tree.drafted()) + " nodes, depth " + std::to_string(tree.max_depth()) +
              ": " + with_interval(tuning.tokens()) + " tokens a cycle expected, " +
              with_interval(tuning.speedup()) + " times as fast as ar [95 %], from " +
              std::to_string(tuning.cycles) + " cycles"};
}

}  // namespace lamplighter::cli
