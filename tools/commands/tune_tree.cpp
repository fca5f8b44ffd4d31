#include <algorithm>
#include <iterator>
#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "bench/candidates.h"
#include "bench/methods.h"
#include "bundle/manifest/attach.h"
#include "draft/auto.h"
#include "draft/registry.h"
#include "lamplighter/error.h"
#include "measure/cycles.h"
#include "tools/attempts.h"
#include "tools/commands/bench.h"
#include "tools/commands/commands.h"
#include "tools/commands/tune_tree.h"
#include "tools/help.h"
#include "tools/requests.h"
#include "tools/signals.h"

namespace lamplighter::cli {
namespace {

// Whether candidates are timed by generating images, without a model of the cost of passes.
bool generates_candidates(const MethodEntry& method) {
  return method.keeps_window() || method.is_row_parallel() || method.needs_refiner();
}

// Refuses flags that the method would ignore. Values from the environment are not in parse_order().
void check_fit(const CLI::App& command, const MethodEntry& method) {
  const bool generates = generates_candidates(method), has_tree = method.tree != TreeKind::parallel_rows;
  const struct Flag {
    const char* flag;
    bool fits;
    const char* why;
  } known[] = {
      {"--ahead", method.is_row_parallel(), "a row-parallel method: zipar, zipar+sjd or pjd"},
      {"--max-nodes", has_tree, "a method that drafts"},
      {"--output", has_tree, "a method with a tree; the distance is printed, --json prints more"},
      {"--max-depth", !generates, "a method with a static tree; --max-nodes limits windows"},
      {"--clock", !generates, "a method with a static tree; others are timed by the wall clock"},
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
  if (!generates_candidates(method) && flags.output.empty() && flags.bundle.empty() && !flags.json &&
      !flags.save_table)
    throw Error(ExitCode::usage,
                "nowhere to write the tree: give --output FILE, --bundle DIR, --save-table or --json");
  // Only the command line counts: --bundle takes precedence over LAMPLIGHTER_MODEL.
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
  jobs.check(manifest);
  if (!jobs.names_images() && !defaults.class_id) jobs.prompts = default_prompts(manifest);
  std::vector<Request> requests;
  for (Job& job : make_jobs(jobs, defaults, parse_seed(flags.jobs.seed))) {
    TextToImage::check(manifest, job.request);
    requests.push_back(std::move(job.request));
  }
  requests.resize(std::min(requests.size(), flags.count.value_or(requests.size())));
  return requests;
}

// Refuses to replace a tree of the bundle without --overwrite.
void check_room(const TuneFlags& flags, const Manifest& manifest, const std::string& kind) {
  const auto tree = manifest.trees.find(kind);
  if (flags.bundle.empty() || flags.overwrite || tree == manifest.trees.end()) return;
  throw Error(ExitCode::output, "--bundle: " + manifest.directory + " has a tree for " + kind + ", " +
                                    tree->second + "; --overwrite replaces it");
}

void store_tree(const TuneFlags& flags, const Manifest& manifest, const std::string& kind,
                const std::string& text, Terminal& terminal) {
  if (flags.bundle.empty()) return;
  const std::string name = "tree-" + kind + ".json";
  attach_file(manifest.directory, name, text, "/trees/" + kind, name);
  terminal.log("stored as " + name + " in " + manifest.directory);
}

// Runs after the bundle has its tree, because the tree changes the checksum that the table is stored under.
void write_table(const TuneFlags& flags, const Manifest& manifest, const Placement& placement,
                 const Tuned& tuned, Terminal& terminal) {
  if (!flags.save_table) return;
  const TableRow baseline{{}, std::nullopt, 1};
  const TableRow row{parse_method(flags.method), tuned.tree, tuned.speedup.mean};
  save_table(manifest, placement, {1, {baseline, row}}, terminal.log_callback());
}

// Resolves the method to tune, with a placeholder for its tree.
MethodOptions read_method(const TuneFlags& flags, const Manifest& manifest) {
  MethodOptions method = parse_method(flags.method);
  const MethodEntry& entry = find_method(method.method);
  if (!entry.drafts())
    throw Error(ExitCode::usage, "--method: got " + method.method + ", expected a method that drafts");
  if (entry.drafts_chains() && !generates_candidates(entry))
    throw Error(ExitCode::usage, "--method: got " + method.method +
                                     ", which drafts chains and has no tree to tune; bench --sweep " +
                                     "tree=chain-3,chain-5,chain-7 --save-table compares lengths");
  if (!method.tree.empty())
    throw Error(ExitCode::usage, "--method: got a tree, expected none: tune-tree looks for it");
  if (entry.is_row_parallel() && !flags.bundle.empty())
    throw Error(ExitCode::usage, "--bundle: got method " + method.method +
                                     ", which stores nothing in a bundle, expected --model DIR");
  if (generates_candidates(entry) && !flags.bundle.empty())
    throw Error(ExitCode::usage,
                "--bundle: got method " + method.method +
                    ", whose window is not stored in a bundle; give --save-table or --output");
  if (!generates_candidates(entry) && !entry.needs_layer() && !flags.bundle.empty())
    throw Error(ExitCode::usage,
                "--bundle: got method " + method.method +
                    ", expected one whose drafter is a layer: a bundle stores no other tree; "
                    "give --output or --save-table");
  if (entry.tree != TreeKind::parallel_rows) method.tree = "chain-1";
  method = resolve_method(method, manifest);
  if (!generates_candidates(entry) && traits_of(rule_from(method.rule)).needs_chains())
    throw Error(ExitCode::usage,
                "--method: got rule " + method.rule + ", which verifies chains and has no tree to tune");
  if (entry.needs_heads()) {
    const std::int64_t heads = manifest.drafters.at(method.drafter).heads;
    if (flags.max_depth.value_or(1) > heads)
      throw Error(ExitCode::usage, "--max-depth: got " + std::to_string(*flags.max_depth) + ", expected 1.." +
                                       std::to_string(heads) + ": drafter " + method.drafter +
                                       " has one head per level");
  }
  if (flags.save_table && !is_lossless(method))
    throw Error(ExitCode::usage, "--save-table: got method " + flags.method + ", expected a lossless one");
  return method;
}

// Distances go up to the widest grid of the images.
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

void print(const TuneFlags& flags, const Tuned& tuned, const Json& file, Terminal& terminal) {
  if (flags.json) return terminal.result(file.dump());
  for (const std::string& line : tuned.lines) terminal.result(line);
}

void print_remarks(const TuneFlags& flags, const MethodEntry& method, const Tuned& tuned,
                   Terminal& terminal) {
  terminal.log(tuned.words);
  if (method.keeps_window() && !tuned.tree)
    terminal.log(
        "no window is faster than row-parallel decoding alone" +
        (flags.output.empty() ? "" : ": " + flags.output + " is not written, because there is no tree"));
  if (method.is_row_parallel())
    terminal.log(
        "a smaller --ahead is more lossy, and tune-tree does not measure quality: see the quality tables in "
        "BENCHMARKS.md");
  if (tuned.speedup.mean <= 1)
    terminal.log(std::string(method.is_row_parallel() ? "no distance" : "no tree") +
                 " is faster than --method " + kBaseline + " here");
}

void tune(TuneFlags& flags, const CLI::App& command) {
  Terminal terminal(flags.logging);
  check_flags(flags, command);
  if (!flags.bundle.empty()) flags.model.model = flags.bundle;
  const Manifest manifest = read_manifest(flags.model.folder());
  require_tokens(manifest);
  const std::vector<Request> requests = read_requests(flags, manifest);
  const MethodOptions method = read_method(flags, manifest);
  const Placement placement = resolve_placement(flags.model.options(), manifest);
  const std::string kind = placement.device.is_cpu() ? "cpu" : "cuda";
  check_room(flags, manifest, kind);
  const MethodEntry& entry = find_method(method.method);
  const Tuned tuned =
      generates_candidates(entry)
          ? tune_by_generation(flags, manifest, candidates_of(flags, manifest, requests), requests, terminal)
          : tune_static_tree(flags, manifest, placement, method, requests, terminal);
  const Json file = tuned.tree ? tree_to_json(*tuned.tree, tuned.about) : Json{{"about", tuned.about}};
  const std::string text = file.dump(1) + "\n";
  Attempts attempts(terminal);
  attempts.make([&] { print(flags, tuned, file, terminal); });
  if (tuned.tree) {
    if (!flags.output.empty()) attempts.make([&] { write_file(flags.output, text, flags.overwrite); });
    attempts.make([&] { store_tree(flags, manifest, kind, text, terminal); });
  }
  attempts.make([&] { write_table(flags, manifest, placement, tuned, terminal); });
  print_remarks(flags, entry, tuned, terminal);
  attempts.finish();
}

}  // namespace

void add_tune_tree(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  flags->model.runtime.batch_size = 1;
  CLI::App* command = app.add_subcommand(
      "tune-tree",
      "Find the fastest draft tree, draft window or distance between parallel rows on this machine");
  flags->jobs.add(*command);
  command->remove_option(command->get_option("--output"));
  flags->model.add_model(*command, false);
  common(*command, command->add_option("--bundle", flags->bundle,
                                       "Folder of a bundle to tune for; the tree is stored in it"))
      ->type_name("DIR");
  flags->model.add_runtime(*command);
  begin_group(*command, "Output");
  common(*command, command->add_option("-o,--output", flags->output, "Write the tree to a file, for --tree"))
      ->type_name("FILE");
  command->add_flag("--overwrite", flags->overwrite,
                    "Replace the tree of the bundle, and the file of --output");
  begin_group(*command, "Measurement");
  command->add_option("--count", flags->count, "Generate the first N of the images")
      ->type_name("N")
      ->default_str("all");
  common(*command,
         command->add_option("--method", flags->method, "Method to tune, written as for bench --methods"))
      ->type_name("NAME")
      ->capture_default_str();
  with_choices(*command, command->get_option("--method"), method_names(true));
  common(*command, command->add_option("--max-nodes", flags->max_nodes, "Largest number of drafted nodes"))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--max-depth", flags->max_depth, "Greatest depth of a tree")
      ->type_name("N")
      ->default_str("8, or the number of the drafter's heads");
  command
      ->add_option("--ahead", flags->ahead,
                   "Distance between parallel rows (zipar+sjd, pjd), or the smallest distance to try (zipar)")
      ->type_name("N")
      ->default_str("all from 1 to half of a row are tried");
  command
      ->add_option("--rounds", flags->rounds,
                   "Interleaved rounds: of cycles for static trees, of all images for windows and distances")
      ->type_name("N")
      ->default_str("static trees: 12; windows and distances: 5 for one image, 1 for several");
  with_choices(*command,
               command->add_option("--clock", flags->clock,
                                   "wall, or processor, which excludes the time of other programs"),
               clock_names())
      ->type_name("NAME")
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print the tree and the measurements as JSON");
  common(*command, command->add_flag("--save-table", flags->save_table, kSaveTable));
  flags->logging.add(*command);
  add_examples(*command,
               {{"store the fastest tree in a bundle", "lamplighter tune-tree --bundle bundles/anole"},
                {"tune for four threads and a lossy rule, and write a file for --tree",
                 "lamplighter tune-tree -t 4 --method lantern++:k=10:lambda=3 -o tree.json"},
                {"tune the window of a method without a drafter, for --method auto",
                 "lamplighter tune-tree --method sjd --max-nodes 15 --save-table"},
                {"find the fastest distance between parallel rows, at least four tokens",
                 "lamplighter tune-tree --method zipar --ahead 4"}});
  command->callback([flags, command] { tune(*flags, *command); });
}

}  // namespace lamplighter::cli
