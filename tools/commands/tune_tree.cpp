#include <algorithm>
#include <iterator>
#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "bench.h"
#include "bench/methods.h"
#include "bench/report/json.h"
#include "bench/report/statistics.h"
#include "bench/tune.h"
#include "bundle/attach.h"
#include "bundle/drafter.h"
#include "bundle/target.h"
#include "commands.h"
#include "decode/prompts.h"
#include "decode/recorder.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"
#include "pipeline/request.h"
#include "propose/method.h"
#include "propose/registry.h"
#include "tools/auto_method.h"
#include "tools/bench_report.h"
#include "tools/help.h"
#include "tools/requests.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

struct TuneFlags {
  ModelFlags model;
  JobFlags jobs;
  TalkFlags talk;
  std::string method = "eagle", bundle, output, clock = "wall";
  std::size_t count = 0;
  int max_nodes = 8, max_depth = 8, rounds = 12;
  bool json = false, overwrite = false, save_table = false;
};

// What is measured, and what follows from it.
struct Tuning {
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
    const Interval spread = tokens_by_picture(best.tree, survey_tree(), pictures);
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
  Drafter drafter;
  PromptTokenizer tokenizer;
  PromptEncoder prompts;
  MethodOptions method;  // resolved; its tree is replaced

  Bench(const Manifest& bundle, const Placement& where, const MethodOptions& options)
      : manifest(bundle),
        placement(where),
        target(bundle, where),
        drafter(bundle, options.drafter, where),
        tokenizer(bundle),
        prompts(bundle, where),
        method(options) {}

  Models models() const { return {&target, &drafter}; }
  std::vector<ResolvedRequest> resolve(const std::vector<Request>& requests) const {
    return resolve_requests(manifest, requests, [&](const Request& request, const Grid& grid) {
      return tokenizer.encode(request, grid);
    });
  }
  Prompts embed(const ResolvedRequest& request) const {
    return embed_prompts(target, {prompts.encode(*request.prompt)}, is_guided({draw(request)}),
                         drafter.entry().padding);
  }
  Method with_tree(Tree tree, bool greedy) const {
    Method made = make_method(method, manifest, placement.device, greedy);
    made.tree = std::move(tree);
    return made;
  }
};

void check_flags(const TuneFlags& flags, bool model_given) {
  const auto within = [](const char* flag, int got, int most) {
    if (got < 1 || got > most) {
      throw Error(ExitCode::usage, std::string(flag) + ": got " + std::to_string(got) + ", expected 1.." +
                                       std::to_string(most));
    }
  };
  within("--max-nodes", flags.max_nodes, static_cast<int>(kMaxTreeNodes) - 1);
  within("--max-depth", flags.max_depth, static_cast<int>(kMaxTreeNodes) - 1);
  within("--rounds", flags.rounds, 100000);
  if (flags.output.empty() && flags.bundle.empty() && !flags.json && !flags.save_table)
    throw Error(ExitCode::usage,
                "nowhere to write the tree: give --output FILE, --bundle DIR, --save-table or --json");
  if (!flags.bundle.empty() && model_given && flags.bundle != flags.model.model)
    throw Error(ExitCode::usage, "--bundle and --model: got two bundles, expected one");
  clock_from(flags.clock);
  if (!flags.output.empty()) check_output(flags.output, flags.overwrite);
  if (flags.save_table) require_cache_folder();
}

// Draws all pictures with the survey tree.
void measure_acceptance(const Bench& bench, const std::vector<ResolvedRequest>& requests, Terminal& terminal,
                        Tuning& tuning) {
  const Tree survey = survey_tree();
  std::vector<Statistics>& pictures = tuning.pictures;
  for (const ResolvedRequest& request : requests) {
    const Method method = bench.with_tree(survey, request.is_greedy());
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
  tuning.acceptance = measured_acceptance(survey, pictures);
  if (tuning.acceptance.empty()) {
    throw Error(ExitCode::usage,
                "got " + std::to_string(tuning.cycles) + " cycles, expected at least 50: give more prompts");
  }
}

// Chains of 0 .. max_nodes drafted tokens, in the middle of a picture of the first prompt. As many tokens are
// accepted as the longest chain is to expect: the drafter's next pass is over so many rows.
void measure_costs(const Bench& bench, const ResolvedRequest& request, const TuneFlags& flags,
                   Tuning& tuning) {
  std::vector<Method> chains;
  for (int length = 0; length <= flags.max_nodes; ++length) {
    chains.push_back(bench.with_tree(preset_tree("chain-" + std::to_string(length)), request.is_greedy()));
  }
  const Prompts prompts = bench.embed(request);
  CycleOptions options;
  options.rounds = flags.rounds;
  options.block = 20;  // in a row, as in a picture: the caches of the processor keep what they can
  options.accepted = accepted_around(expected_tokens(*chains.back().tree, tuning.acceptance) - 1);
  options.clock = clock_from(flags.clock);
  tuning.costs = measured_costs(
      measure_cycles(bench.models(), chains, prompts, draw(request), *request.grid, options, [](int) {
        return stop_signal() == 0;
      }).rounds);
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

std::vector<Request> read_requests(const TuneFlags& flags, const Manifest& manifest) {
  Request defaults;
  if (manifest.prompt && manifest.prompt->kind == "class") defaults.class_id = 0;
  JobFlags jobs = flags.jobs;
  const bool named = !jobs.prompts.empty() || !jobs.prompt_file.empty() || jobs.class_id;
  if (!named && !defaults.class_id) jobs.prompts.assign(std::begin(kPrompts), std::end(kPrompts));
  std::vector<Request> requests;
  for (Job& job : make_jobs(jobs, defaults, parse_seed(flags.jobs.seed))) {
    TextToImage::check(manifest, job.request);
    requests.push_back(std::move(job.request));
  }
  if (flags.count > 0 && flags.count < requests.size()) requests.resize(flags.count);
  return requests;
}

// A tree that was tuned before is not lost by the way.
void check_room(const TuneFlags& flags, const Manifest& manifest, const std::string& kind) {
  const auto tree = manifest.trees.find(kind);
  if (flags.bundle.empty() || flags.overwrite || tree == manifest.trees.end()) return;
  throw Error(ExitCode::output, "--bundle: " + manifest.directory + " has a tree for " + kind + ", " +
                                    tree->second + "; --overwrite replaces it");
}

void write_tree(const TuneFlags& flags, const Manifest& manifest, const std::string& kind, const Json& file,
                Terminal& terminal) {
  const std::string text = file.dump(1) + "\n";
  if (!flags.output.empty()) write_file(flags.output, text, flags.overwrite);
  if (!flags.bundle.empty()) {
    const std::string name = "tree-" + kind + ".json";
    attach_file(manifest.directory, name, text, "/trees/" + kind, name);
    terminal.say("stored as " + name + " in " + manifest.directory);
  }
}

// After the bundle has its tree, which changes the checksum that the table goes by.
void write_table(const TuneFlags& flags, const Bench& bench, const Tuning& tuning, Terminal& terminal) {
  if (!flags.save_table) return;
  const TableRow baseline{{}, std::nullopt, 1};
  const TableRow tuned{parse_method(flags.method), tuning.best.tree, tuning.speedup().mean};
  save_table(bench.manifest, bench.placement, {1, {baseline, tuned}}, terminal);
}

void tune(TuneFlags& flags, bool model_given) {
  Terminal terminal(flags.talk);
  check_flags(flags, model_given);
  if (!flags.bundle.empty()) flags.model.model = flags.bundle;
  const Manifest manifest = read_manifest(flags.model.folder());
  require_drawable(manifest);
  const std::vector<Request> requests = read_requests(flags, manifest);
  MethodOptions method = parse_method(flags.method);
  const MethodEntry& entry = find_method(method.method);
  if (!entry.drafts())
    throw Error(ExitCode::usage, "--method: got " + method.method + ", which drafts nothing");
  if (entry.drafts_chains())
    throw Error(ExitCode::usage, "--method: got " + method.method +
                                     ", which drafts chains: there is no tree to look for; bench --sweep " +
                                     "tree=chain-3,chain-5,chain-7 --save-table compares lengths");
  if (!method.tree.empty()) throw Error(ExitCode::usage, "--method: got a tree, which is what is looked for");
  method.tree = "chain-1";
  method = resolve_method(method, manifest);
  if (rule_from(method.rule) == Rule::block)
    throw Error(ExitCode::usage, "--method: the rule block judges chains, there is no tree to look for");
  if (flags.save_table && !is_exact(method))
    throw Error(ExitCode::usage, "--save-table: got method " + flags.method + ", expected an exact one");
  verify_files(manifest, flags.model.options().verify_checksums);
  const Placement placement = resolve_placement(flags.model.options(), manifest);
  const std::string kind = placement.device.is_cpu() ? "cpu" : "cuda";
  check_room(flags, manifest, kind);
  const Bench bench(manifest, placement, method);
  const std::vector<ResolvedRequest> wanted = bench.resolve(requests);
  Tuning tuning;
  tuning.device = placement.device.str();
  tuning.dtype = dtype_name(placement);
  const OrderlyStop orderly;
  measure_acceptance(bench, wanted, terminal, tuning);
  measure_costs(bench, wanted.front(), flags, tuning);
  tuning.best = best_drafting_tree(tuning, flags.max_depth);
  const Json file = tree_to_json(tuning.best.tree, about(tuning, flags, manifest));
  if (flags.json) terminal.result(file.dump());  // first: a file may prove unwritable
  write_tree(flags, manifest, kind, file, terminal);
  write_table(flags, bench, tuning, terminal);
  terminal.say("tree of " + std::to_string(tuning.best.tree.drafted()) + " nodes, depth " +
               std::to_string(tuning.best.tree.max_depth()) + ": " + with_interval(tuning.tokens()) +
               " tokens a cycle expected, " + with_interval(tuning.speedup()) +
               " times as fast as ar [95 %], from " + std::to_string(tuning.cycles) + " cycles");
  if (tuning.speedup().mean <= 1)
    terminal.say("no tree pays here: --method " + std::string(kBaseline) + " is quicker");
}

}  // namespace

void add_tune_tree(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  flags->model.runtime.batch_size = 1;
  CLI::App* command =
      app.add_subcommand("tune-tree", "Find the static draft tree that pays best on this machine");
  flags->model.add_model(*command, false);
  command->add_option("--bundle", flags->bundle, "Tune for this bundle, and store the tree in it")
      ->type_name("DIR");
  flags->jobs.add(*command);
  command->remove_option(command->get_option("--output"));
  flags->model.add_runtime(*command);
  begin_group(*command, "Output");
  command->add_option("-o,--output", flags->output, "Write the tree here, for --tree")->type_name("FILE");
  command->add_flag("--overwrite", flags->overwrite,
                    "Replace the tree of the bundle, and the file of --output");
  begin_group(*command, "Measurement");
  command->add_option("--count", flags->count, "Draw the first N of the pictures")->type_name("N");
  command
      ->add_option("--method", flags->method,
                   "Method whose acceptance counts, as for bench --methods (default: eagle)")
      ->type_name("NAME");
  command->add_option("--max-nodes", flags->max_nodes, "Most drafted nodes (default: 8)")->type_name("N");
  command->add_option("--max-depth", flags->max_depth, "Greatest depth (default: 8)")->type_name("N");
  command->add_option("--rounds", flags->rounds, "Interleaved rounds of the cost measurement (default: 12)")
      ->type_name("N");
  command
      ->add_option("--clock", flags->clock,
                   "wall, or processor to leave out what other programs took (default: wall)")
      ->type_name("NAME");
  command->add_flag("--json", flags->json, "Print the tree as JSON");
  command->add_flag("--save-table", flags->save_table, kSaveTable);
  flags->talk.add(*command);
  add_examples(*command, {{"store the best tree in a bundle", "lamplighter tune-tree --bundle bundles/anole"},
                          {"for four threads and a relaxed rule, as a file for --tree",
                           "lamplighter tune-tree -t 4 --method lantern++:k=10:lambda=3 -o tree.json"}});
  command->callback([flags, command] {
    // What the command line gave: --bundle goes before a --model of the environment.
    const std::vector<CLI::Option*>& given = command->parse_order();
    const bool model_given =
        std::find(given.begin(), given.end(), command->get_option("--model")) != given.end();
    tune(*flags, model_given);
  });
}

}  // namespace lamplighter::cli
