#include <algorithm>
#include <iterator>
#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "bench.h"
#include "bench/auto_method.h"
#include "bench/candidates.h"
#include "bench/methods.h"
#include "bundle/manifest/attach.h"
#include "commands.h"
#include "lamplighter/error.h"
#include "propose/registry.h"
#include "tools/help.h"
#include "tools/requests.h"
#include "tools/signals.h"
#include "tune_tree.h"

namespace lamplighter::cli {
namespace {

// Whether its candidates draw pictures, which needs no model of what passes cost.
bool draws_candidates(const MethodEntry& method) {
  return method.keeps_window() || method.opens_rows() || method.needs_refiner();
}

// A flag that the method has no use for would change nothing. What the environment has set is not in
// parse_order().
void check_fit(const CLI::App& command, const MethodEntry& method) {
  const bool draws = draws_candidates(method), has_tree = method.tree != TreeKind::rows;
  const struct Flag {
    const char* flag;
    bool fits;
    const char* why;
  } known[] = {
      {"--ahead", method.opens_rows(), "one whose rows stand side by side: zipar, zipar+sjd or pjd"},
      {"--max-nodes", has_tree, "one that drafts"},
      {"--output", has_tree, "one with a tree; the distance is printed, --json prints more"},
      {"--max-depth", !draws, "one with a static tree; --max-nodes is for windows"},
      {"--clock", !draws, "one with a static tree; others draw pictures by the wall clock"},
  };
  for (const CLI::Option* option : command.parse_order()) {
    for (const auto& [flag, fits, why] : known) {
      if (option == command.get_option(flag) && !fits)
        throw Error(ExitCode::usage, std::string(flag) + ": got method " + method.name + ", expected " + why);
    }
  }
}

void check_flags(const TuneFlags& flags, const CLI::App& command) {
  const MethodEntry& method = find_method(parse_method(flags.method).method);
  check_fit(command, method);
  const auto within = [](const char* flag, int got, int most) {
    if (got < 1 || got > most) {
      throw Error(ExitCode::usage, std::string(flag) + ": got " + std::to_string(got) + ", expected 1.." +
                                       std::to_string(most));
    }
  };
  within("--max-nodes", flags.max_nodes, static_cast<int>(kMaxTreeNodes) - 1);
  within("--max-depth", flags.max_depth.value_or(1), static_cast<int>(kMaxTreeNodes) - 1);
  if (flags.count == 0) throw Error(ExitCode::usage, "--count: got 0, expected 1 or more");
  within("--rounds", flags.rounds.value_or(1), 100000);
  if (!draws_candidates(method) && flags.output.empty() && flags.bundle.empty() && !flags.json &&
      !flags.save_table)
    throw Error(ExitCode::usage,
                "nowhere to write the tree: give --output FILE, --bundle DIR, --save-table or --json");
  // What the command line gave: --bundle goes before a --model of the environment.
  const std::vector<CLI::Option*>& given = command.parse_order();
  const bool model_given =
      std::find(given.begin(), given.end(), command.get_option("--model")) != given.end();
  if (!flags.bundle.empty() && model_given && flags.bundle != flags.model.model)
    throw Error(ExitCode::usage, "--bundle and --model: got two bundles, expected one");
  clock_from(flags.clock);
  if (!flags.output.empty()) check_output(flags.output, flags.overwrite);
  if (flags.save_table) require_cache_folder();
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
  requests.resize(std::min(requests.size(), flags.count.value_or(requests.size())));
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
void write_table(const TuneFlags& flags, const Manifest& manifest, const Placement& placement,
                 const Tuned& tuned, Terminal& terminal) {
  if (!flags.save_table) return;
  const TableRow baseline{{}, std::nullopt, 1};
  const TableRow row{parse_method(flags.method), tuned.tree, tuned.speedup.mean};
  save_table(manifest, placement, {1, {baseline, row}}, terminal.sayer());
}

// The method that is tuned, with a tree in the place of the one that is looked for.
MethodOptions read_method(const TuneFlags& flags, const Manifest& manifest) {
  MethodOptions method = parse_method(flags.method);
  const MethodEntry& entry = find_method(method.method);
  if (!entry.drafts())
    throw Error(ExitCode::usage, "--method: got " + method.method + ", which drafts nothing");
  if (entry.tree == TreeKind::chain && !draws_candidates(entry))
    throw Error(ExitCode::usage, "--method: got " + method.method +
                                     ", which drafts chains: there is no tree to look for; bench --sweep " +
                                     "tree=chain-3,chain-5,chain-7 --save-table compares lengths");
  if (!method.tree.empty()) throw Error(ExitCode::usage, "--method: got a tree, which is what is looked for");
  if (entry.opens_rows() && !flags.bundle.empty())
    throw Error(ExitCode::usage, "--bundle: got method " + method.method +
                                     ", which a bundle keeps nothing of, expected --model DIR");
  if (draws_candidates(entry) && !flags.bundle.empty())
    throw Error(ExitCode::usage, "--bundle: got method " + method.method +
                                     ", whose window a bundle does not keep; give --save-table or --output");
  if (!draws_candidates(entry) && !entry.needs_layer() && !flags.bundle.empty())
    throw Error(ExitCode::usage, "--bundle: got method " + method.method +
                                     ", expected one whose drafter is a layer: a bundle keeps no other tree; "
                                     "give --output or --save-table");
  if (entry.tree != TreeKind::rows) method.tree = "chain-1";
  method = resolve_method(method, manifest);
  if (!draws_candidates(entry) && rule_from(method.rule) == Rule::block)
    throw Error(ExitCode::usage, "--method: the rule block judges chains, there is no tree to look for");
  if (entry.needs_heads()) {
    const std::int64_t heads = manifest.drafters.at(method.drafter).heads;
    if (flags.max_depth.value_or(1) > heads)
      throw Error(ExitCode::usage, "--max-depth: got " + std::to_string(*flags.max_depth) + ", expected 1.." +
                                       std::to_string(heads) + ": drafter " + method.drafter +
                                       " has so many heads");
  }
  if (flags.save_table && !is_exact(method))
    throw Error(ExitCode::usage, "--save-table: got method " + flags.method + ", expected an exact one");
  return method;
}

// Pictures of several sizes have the distances of the widest.
std::vector<BenchMethod> candidates_of(const TuneFlags& flags, const Manifest& manifest,
                                       const std::vector<Request>& requests) {
  CandidateBounds bounds{flags.max_nodes, 1, flags.ahead};
  for (const Request& request : requests)
    bounds.columns =
        std::max<std::int64_t>(bounds.columns, find_grid(manifest, request.width, request.height).columns);
  std::vector<BenchMethod> candidates = tuning_candidates(flags.method, bounds);
  for (const BenchMethod& candidate : candidates) resolve_method(candidate.options, manifest);
  return candidates;
}

// What is found, ahead of files that may prove unwritable.
void print(const TuneFlags& flags, const Tuned& tuned, const Json& file, Terminal& terminal) {
  if (flags.json) return terminal.result(file.dump());
  for (const std::string& line : tuned.lines) terminal.result(line);
}

void tell(const TuneFlags& flags, const MethodEntry& method, const Tuned& tuned, Terminal& terminal) {
  terminal.say(tuned.words);
  if (method.keeps_window() && !tuned.tree)
    terminal.say("no window pays here" +
                 (flags.output.empty() ? "" : ": " + flags.output + " is not written, there is no tree"));
  if (method.opens_rows())
    terminal.say(
        "a smaller --ahead costs quality, which is not measured here: see Quality of the demo bundle in "
        "BENCHMARKS.md");
  if (tuned.speedup.mean <= 1)
    terminal.say(std::string(method.opens_rows() ? "no distance" : "no tree") + " pays here: --method " +
                 kBaseline + " is quicker");
}

void tune(TuneFlags& flags, const CLI::App& command) {
  Terminal terminal(flags.talk);
  check_flags(flags, command);
  if (!flags.bundle.empty()) flags.model.model = flags.bundle;
  const Manifest manifest = read_manifest(flags.model.folder());
  require_drawable(manifest);
  const std::vector<Request> requests = read_requests(flags, manifest);
  const MethodOptions method = read_method(flags, manifest);
  const Placement placement = resolve_placement(flags.model.options(), manifest);
  const std::string kind = placement.device.is_cpu() ? "cpu" : "cuda";
  check_room(flags, manifest, kind);
  const MethodEntry& entry = find_method(method.method);
  const Tuned tuned =
      draws_candidates(entry)
          ? tune_by_drawing(flags, manifest, candidates_of(flags, manifest, requests), requests, terminal)
          : tune_static_tree(flags, manifest, placement, method, requests, terminal);
  const Json file = tuned.tree ? tree_to_json(*tuned.tree, tuned.about) : Json{{"about", tuned.about}};
  print(flags, tuned, file, terminal);
  if (tuned.tree) write_tree(flags, manifest, kind, file, terminal);
  write_table(flags, manifest, placement, tuned, terminal);
  tell(flags, entry, tuned, terminal);
}

}  // namespace

void add_tune_tree(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  flags->model.runtime.batch_size = 1;
  CLI::App* command = app.add_subcommand(
      "tune-tree",
      "Find the static draft tree, the window of drafts or the distance between rows that pays best on this "
      "machine");
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
      ->add_option("--method", flags->method, "Method that is tuned, as for bench --methods (default: eagle)")
      ->type_name("NAME");
  command->add_option("--max-nodes", flags->max_nodes, "Most drafted nodes (default: 8)")->type_name("N");
  command
      ->add_option("--max-depth", flags->max_depth,
                   "Greatest depth (default: 8, heads: as many as there are)")
      ->type_name("N");
  command
      ->add_option(
          "--ahead", flags->ahead,
          "The distance between rows (zipar+sjd, pjd), or the least one that is tried (zipar); default: "
          "1 to half of a row are tried")
      ->type_name("N");
  command
      ->add_option(
          "--rounds", flags->rounds,
          "Interleaved rounds: of the cost measurement (default: 12); of all pictures for windows and "
          "distances (default: 5 for one picture, else 1)")
      ->type_name("N");
  command
      ->add_option("--clock", flags->clock,
                   "wall, or processor to leave out what other programs took (default: wall)")
      ->type_name("NAME");
  command->add_flag("--json", flags->json, "Print the tree, and how it was found, as JSON");
  command->add_flag("--save-table", flags->save_table, kSaveTable);
  flags->talk.add(*command);
  add_examples(*command, {{"store the best tree in a bundle", "lamplighter tune-tree --bundle bundles/anole"},
                          {"for four threads and a relaxed rule, as a file for --tree",
                           "lamplighter tune-tree -t 4 --method lantern++:k=10:lambda=3 -o tree.json"},
                          {"the window of a method without a drafter, for --method auto",
                           "lamplighter tune-tree --method sjd --max-nodes 15 --save-table"},
                          {"the fastest distance between rows, four tokens at least",
                           "lamplighter tune-tree --method zipar --ahead 4"}});
  command->callback([flags, command] { tune(*flags, *command); });
}

}  // namespace lamplighter::cli
