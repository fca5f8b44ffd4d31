#include <cstdlib>
#include <memory>
#include <set>
#include <string>

#include "base/format.h"
#include "base/suggestion.h"
#include "batch/captions/entries.h"
#include "batch/collect.h"
#include "batch/run.h"
#include "batch/status.h"
#include "device/machine.h"
#include "draft/options/options.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "pipeline/metadata/request_fields.h"
#include "text/prompt_syntax.h"
#include "tools/commands/batch_reporter.h"
#include "tools/commands/commands.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/requests.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

struct BatchFlags {
  BatchOptions options;
  ModelFlags model;
  MethodFlags method;
  SamplingFlags sampling;
  LogFlags logging;
  std::string seed = "42", shard, queue, config, status, merge;
  std::vector<std::string> merged;
  int shards = 0;
  bool json = false, no_metadata = false, dry_run = false;
};

// A launcher that starts several processes on one machine gives each a device of its own.
void choose_device(const Shard& shard, RuntimeOptions& runtime) {
  const int devices = count_cuda_devices();
  if (devices > 1 && (runtime.device == "auto" || runtime.device == "cuda"))
    runtime.device = "cuda:" + std::to_string(shard.local % devices);
}

void read_flags(BatchFlags& flags, Terminal& terminal) {
  BatchOptions& options = flags.options;
  options.plan.seed = parse_seed(flags.seed);
  if (flags.seed == "-1") {
    throw Error(
        ExitCode::usage,
        "--seed: got -1, expected a fixed seed, so that a run that continues generates the same images");
  }
  flags.sampling.apply(options.plan.defaults);
  options.bundle = flags.model.folder();
  options.runtime = flags.model.options();
  options.method = flags.method.options;
  options.metadata = !flags.no_metadata;
  options.shard = find_shard(flags.shard, flags.shards, [](const char* name) { return std::getenv(name); });
  options.queue.serves = options.shard.index == 0;
  choose_device(options.shard, options.runtime);
  options.method =
      choose_method(options.method, read_manifest(options.bundle), options.runtime,
                    static_cast<std::size_t>(options.runtime.batch_size), terminal.log_callback());
}

void note_prompt_syntax(const Plan& plan, Terminal& terminal) {
  PromptSyntax syntax;
  for (const PlannedImage& image : plan.images) syntax.add(image.request.prompt);
  const std::string note = syntax.note();
  if (!note.empty()) terminal.log(note);
}

// Names the fields of prompt files that records of this set have, once: a run generates all captions alike.
void note_unread_fields(const Plan& plan, Terminal& terminal) {
  std::set<std::string> unread{"batch_count", "method", "output"};
  for (const MethodOption& option : method_options()) unread.insert(option.key);
  std::string found, where;
  for (const PlannedImage& image : plan.images) {
    if (image.record.repeat != 0 || !image.record.fields.is_object()) continue;
    for (const auto& [key, value] : image.record.fields.items()) {
      const std::string name = field_name(key);
      if (value.is_null() || value == "" || unread.erase(name) == 0) continue;
      if (found.empty()) where = image.where;
      found += (found.empty() ? "" : ", ") + name;
    }
  }
  if (found.empty()) return;
  terminal.log("note: " + where + ": batch does not read " + found +
               ", which generate reads in prompt files; -b, --method and its options are for all captions");
}

void batch(BatchFlags& flags) {
  Terminal terminal(flags.logging);
  if (!flags.status.empty()) return terminal.result(describe_status(flags.status));
  if (!flags.merge.empty()) {
    merge(flags.merge, flags.merged);
    return terminal.result(describe_status(flags.merge));
  }
  if (flags.options.plan.captions.empty())
    throw Error(ExitCode::usage, "captions: got none, expected a caption file, or - for standard input");
  if (flags.options.folder.empty()) throw Error(ExitCode::usage, "output: got none, expected a folder");
  read_flags(flags, terminal);
  const BatchPlan plan = plan_batch(flags.options);
  BatchReporter reporter(flags.options.folder, flags.json, terminal);
  reporter.begin(plan, flags.options.shard);
  note_prompt_syntax(plan.plan, terminal);
  note_unread_fields(plan.plan, terminal);
  if (flags.dry_run) return terminal.result(describe_estimate(flags.options, plan));
  const OrderlyStop orderly;
  BatchCalls calls;
  calls.progress = [&](const BatchProgress& progress) { reporter.progress(progress); };
  calls.image = [&](const Record& record, const BatchProgress& progress) {
    reporter.image(record, progress);
  };
  calls.go_on = [] { return stop_signal() == 0; };
  const BatchProgress progress = run_batch(flags.options, plan, calls);
  reporter.end(progress);
  if (progress.failed > 0) {
    throw Error(ExitCode::some_failed, std::to_string(progress.failed) + " of " +
                                           counted(progress.images, "image") +
                                           " could not be generated; the same command tries them again");
  }
}

void add_input(CLI::App& command, BatchFlags& flags) {
  PlanOptions& plan = flags.options.plan;
  common(command,
         command.add_option("--captions,captions", plan.captions,
                            "COCO's caption file, JSON, JSON lines, CSV, TSV, plain text, or a folder of "
                            ".txt files; - = standard input"))
      ->type_name("FILE");
  with_choices(command,
               command.add_option("--format", plan.format,
                                  "Format of the captions: " + list_of(captions::format_names())),
               captions::format_names())
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--column", plan.column, "Column or key of the captions")
      ->type_name("NAME")
      ->default_str("prompt, caption, text, ...");
  common(command, add_select(command, plan));
  command.add_option("--offset", plan.offset, "Skip the first N captions")
      ->type_name("N")
      ->capture_default_str();
  common(command, command.add_option("--limit", plan.limit, "Generate at most N captions"))
      ->type_name("N")
      ->default_str("all");
  common(command, command.add_option("-b,--batch-count", plan.repeats, "Images per caption"))
      ->type_name("N")
      ->capture_default_str();
  common(command, command.add_option("-s,--seed", flags.seed,
                                     "Image r of caption i uses seed + i x batch count + r, both from 0; "
                                     "another seed adds images"))
      ->type_name("N")
      ->capture_default_str();
}

void add_output(CLI::App& command, BatchFlags& flags) {
  BatchOptions& options = flags.options;
  common(command, command.add_option("-o,--output", options.folder, "Folder of the run"))->type_name("DIR");
  common(command, command.add_option("--layout", options.plan.layout,
                                     "File names, and files beside images/: " + list_of(layout_names())))
      ->type_name("NAME")
      ->capture_default_str();
  with_choices(command, command.get_option("--layout"), layout_names());
  command
      .add_option("--name", options.plan.name,
                  "Pattern of file names: {index:05d}, {image_id:012d}, {id}, {repeat}, {seed}")
      ->type_name("PATTERN")
      ->default_str("the layout's");
  command.add_flag("--no-metadata", flags.no_metadata, "Write no settings into the PNG files");
  command.add_flag("--verify", options.verify, "Compare the images that exist with their checksums");
  command.add_flag("--force-config", options.force_config,
                   "Continue a run under another configuration; images stay with their captions");
  command.add_option("--retry", options.retries, "Further tries of an image that could not be generated")
      ->type_name("N")
      ->capture_default_str();
}

void add_processes(CLI::App& command, BatchFlags& flags) {
  const auto add = [&](const char* name, auto& value, const char* type, const char* meaning) {
    return command.add_option(name, value, meaning)->type_name(type)->group("Several processes");
  };
  add("--shard", flags.shard, "I/N", "Generate part I of N, with I from 0")
      ->default_str("from torchrun, MPI, Slurm, SGE, LSF, Kubernetes or AWS Batch, else 0/1");
  add("--shards", flags.shards, "N", "Number of parts, for launchers that number their processes only");
  add("--queue", flags.options.queue.address, "HOST:PORT",
      "Give out captions one by one, instead of in fixed parts; process 0 serves the queue at this address");
  add("--lease", flags.options.queue.lease_seconds, "N",
      "With --queue: a process that is silent for N seconds is lost, and others generate its captions")
      ->capture_default_str();
  add("--merge", flags.merge, "DIR",
      "Generate nothing: join the manifests of the parts in this folder, after copying those in --from");
  add("--from", flags.merged, "FOLDERS", "With --merge: folders of parts on other disks");
}

}  // namespace

void add_batch(CLI::App& app) {
  auto flags = std::make_shared<BatchFlags>();
  CLI::App* command =
      app.add_subcommand("batch", "Generate a caption set into a folder; run again, it continues");
  begin_group(*command, "Captions");
  add_input(*command, *flags);
  begin_group(*command, "Output");
  add_output(*command, *flags);
  flags->sampling.add(*command);
  flags->method.add(*command);
  flags->model.add_model(*command, false);
  flags->model.add_runtime(*command);
  flags->model.add_batch_size(*command);
  add_processes(*command, *flags);
  begin_group(*command, "Options");
  common(*command, command->add_flag("--dry-run", flags->dry_run,
                                     "Check everything and estimate time and disk space; write no images"));
  common(*command, command->add_option("--status", flags->status,
                                       "Generate nothing: print the progress of the run in this folder"))
      ->type_name("DIR");
  command->add_flag("--json", flags->json, "Print events as JSON lines");
  command->add_option("--config", flags->config, kConfigHelp)->type_name("FILE");
  flags->logging.add(*command);
  Help::page(*command).lists.emplace_back([] {
    HelpList list{"Layouts", {}};
    for (const Layout& layout : layouts()) list.entries.emplace_back(layout.name, layout.meaning);
    return list;
  });
  add_examples(*command,
               {{"one image for each image of COCO; after an interruption, the same command continues",
                 "lamplighter batch --captions captions_val2017.json --select longest -o out/"},
                {"the time and disk space that a run would take",
                 "lamplighter batch --captions captions.txt -o out/ --dry-run"},
                {"a quarter of the captions; torchrun, Slurm and other launchers need no --shard",
                 "lamplighter batch --captions captions.txt -o out/ --shard 0/4"},
                {"the progress of a run", "lamplighter batch --status out/"}});
  command->callback([flags, command] {
    if (!flags->config.empty()) apply_config(*command, flags->config);
    batch(*flags);
  });
}

}  // namespace lamplighter::cli
