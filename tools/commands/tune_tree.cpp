#include <algorithm>
#include <iterator>
#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "bench.h"
#include "bench/auto_method.h"
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
  if (entry.tree == TreeKind::chain)
    throw Error(ExitCode::usage, "--method: got " + method.method +
                                     ", which drafts chains: there is no tree to look for; bench --sweep " +
                                     "tree=chain-3,chain-5,chain-7 --save-table compares lengths");
  if (!method.tree.empty()) throw Error(ExitCode::usage, "--method: got a tree, which is what is looked for");
  if (entry.keeps_window() && !flags.bundle.empty())
    throw Error(ExitCode::usage, "--bundle: got method " + method.method +
                                     ", whose window a bundle does not keep; give --save-table or --output");
  method.tree = "chain-1";
  method = resolve_method(method, manifest);
  if (rule_from(method.rule) == Rule::block && !entry.keeps_window())
    throw Error(ExitCode::usage, "--method: the rule block judges chains, there is no tree to look for");
  if (flags.save_table && !is_exact(method))
    throw Error(ExitCode::usage, "--save-table: got method " + flags.method + ", expected an exact one");
  return method;
}

void tune(TuneFlags& flags, bool model_given) {
  Terminal terminal(flags.talk);
  check_flags(flags, model_given);
  if (!flags.bundle.empty()) flags.model.model = flags.bundle;
  const Manifest manifest = read_manifest(flags.model.folder());
  require_drawable(manifest);
  const std::vector<Request> requests = read_requests(flags, manifest);
  const MethodOptions method = read_method(flags, manifest);
  const Placement placement = resolve_placement(flags.model.options(), manifest);
  const std::string kind = placement.device.is_cpu() ? "cpu" : "cuda";
  check_room(flags, manifest, kind);
  const bool window = find_method(method.method).keeps_window();
  const Tuned tuned = window ? tune_window(flags, manifest, requests, terminal)
                             : tune_static_tree(flags, manifest, placement, method, requests, terminal);
  const Json file = tree_to_json(tuned.tree, tuned.about);
  if (flags.json) terminal.result(file.dump());  // first: a file may prove unwritable
  write_tree(flags, manifest, kind, file, terminal);
  write_table(flags, manifest, placement, tuned, terminal);
  terminal.say(tuned.words);
  if (tuned.speedup.mean <= 1)
    terminal.say("no tree pays here: --method " + std::string(kBaseline) + " is quicker");
}

}  // namespace

void add_tune_tree(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  flags->model.runtime.batch_size = 1;
  CLI::App* command = app.add_subcommand(
      "tune-tree", "Find the static draft tree, or the window of drafts, that pays best on this machine");
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
                           "lamplighter tune-tree -t 4 --method lantern++:k=10:lambda=3 -o tree.json"},
                          {"the window of a method without a drafter, for --method auto",
                           "lamplighter tune-tree --method sjd --max-nodes 15 --save-table"}});
  command->callback([flags, command] {
    // What the command line gave: --bundle goes before a --model of the environment.
    const std::vector<CLI::Option*>& given = command->parse_order();
    const bool model_given =
        std::find(given.begin(), given.end(), command->get_option("--model")) != given.end();
    tune(*flags, model_given);
  });
}

}  // namespace lamplighter::cli
